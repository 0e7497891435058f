"""Several hosts on one machine: network namespaces joined by a bridge, each with one interface of its own."""

import atexit
import functools
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from llcg_dist.comm.job_key import write_key
from tests.helpers.jobs import BIN, REPOSITORY, Job, start

PORT = 29500


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


@dataclass(frozen=True)
class Host:
    name: str
    address: str
    interface: str
    outside: str
    """The end of its cable that is plugged into the bridge."""

    def command(self, *command: str) -> list[str]:
        return ["ip", "netns", "exec", self.name, "env", "OMP_NUM_THREADS=1", *command]

    def sent_bytes(self) -> int:
        """What its interface has sent so far, headers and all."""
        command = ["ip", "-n", self.name, "-s", "-j", "link", "show", "dev", self.interface]
        shown = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        return int(shown[0]["stats64"]["tx"]["bytes"])

    def limit(self, megabits: float) -> None:
        """The rate of its cable in Mbit/s, each way: what it sends waits here, what it receives at the bridge."""
        burst = max(64_000, round(megabits * 1_000_000 / 8 / 200))  # bytes: 5 ms of the rate, or one large packet
        shape = ["root", "tbf", "rate", f"{round(megabits * 1000)}kbit", "burst", str(burst), "latency", "50ms"]
        subprocess.run(["tc", "-n", self.name, "qdisc", "replace", "dev", self.interface, *shape], check=True)
        subprocess.run(["tc", "qdisc", "replace", "dev", self.outside, *shape], check=True)

    def unlimit(self) -> None:
        subprocess.run(["tc", "-n", self.name, "qdisc", "del", "dev", self.interface, "root"], capture_output=True)
        subprocess.run(["tc", "qdisc", "del", "dev", self.outside, "root"], capture_output=True)

    def unplug(self) -> None:
        ip("link", "set", self.outside, "down")

    def plug(self) -> None:
        ip("link", "set", self.outside, "up")


@contextmanager
def hosts(count: int) -> Iterator[list[Host]]:
    if os.geteuid() != 0 or not shutil.which("ip"):
        pytest.skip("network namespaces need root and iproute2")
    tag = f"{os.getpid() % 10000}"
    bridge = f"llbr{tag}"
    made = [Host(f"ll{tag}h{i}", f"10.77.0.{i + 1}", f"ll{tag}e{i}", f"ll{tag}v{i}") for i in range(count)]
    try:
        ip("link", "add", bridge, "type", "bridge")
    except subprocess.CalledProcessError as error:
        pytest.skip(f"this machine makes no bridge: {error.stderr.decode().strip()}")
    try:
        ip("link", "set", bridge, "up")
        for host in made:
            ip("netns", "add", host.name)
            ip("link", "add", host.outside, "type", "veth", "peer", "name", host.interface)
            ip("link", "set", host.interface, "netns", host.name)
            ip("link", "set", host.outside, "master", bridge)
            ip("link", "set", host.outside, "up")
            ip("-n", host.name, "addr", "add", f"{host.address}/24", "dev", host.interface)
            ip("-n", host.name, "link", "set", host.interface, "up")
            ip("-n", host.name, "link", "set", "lo", "up")
        yield made
    finally:
        for host in made:
            # A namespace goes with the last process in it, and its cable with it: the next one may have the same name.
            subprocess.run(["ip", "link", "del", host.outside], capture_output=True)
            subprocess.run(["ip", "netns", "del", host.name], capture_output=True)
        subprocess.run(["ip", "link", "del", bridge], capture_output=True)


@functools.cache
def shared_key() -> str:
    """The setting of a key that all hosts of these tests have."""
    folder = tempfile.mkdtemp(prefix="llcg-test-key-")
    atexit.register(shutil.rmtree, folder)
    write_key(Path(folder) / "job.key")
    return f"cluster.key_file={folder}/job.key"


def multinode(host: Host, head: Host, count: int, here: int, *settings: str) -> Job:
    """This host's share of a job of `count` hosts: `here` of its processes."""
    where = ["--head", f"{head.address}:{PORT}", "--hosts", str(count), "--here", str(here)]
    if not any(setting.startswith(("cluster.key_file=", "cluster.sealed=")) for setting in settings):
        settings = (*settings, shared_key())
    return start(host.command("bash", str(REPOSITORY / "launch" / "multinode.sh"), *where, *settings))


def torchrun_on(host: Host, head: Host, count: int, here: int, *settings: str, max_restarts: int = 0) -> Job:
    """The same by hand: torchrun with a rendezvous at the head."""
    rendezvous = ["--rdzv-backend=c10d", f"--rdzv-endpoint={head.address}:{PORT}", "--rdzv-id=test"]
    rendezvous += ["--rdzv-conf", f"is_host={int(host is head)}", f"--local-addr={host.address}"]
    layout = [f"--nnodes={count}", f"--nproc-per-node={here}", f"--max-restarts={max_restarts}"]
    return start(host.command(str(BIN / "torchrun"), *layout, *rendezvous, "-m", "llcg_dist.train", *settings))
