"""A real SLURM of two nodes on this host: munged, slurmctld and two slurmd, all in one temporary folder."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.helpers.jobs import BIN, is_alive

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch")
ENDED = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE"}
SECONDS_TO_START = 60

CONF = """
ClusterName=llcg
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
# No cgroups, no accounting daemon, no binding of tasks to cores: what a container without systemd allows.
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SwitchType=switch/none
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=1,batch_sched_delay=0
KillWait=30
MinJobAge=300
ReturnToService=2
{nodes}
PartitionName=all Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP
"""


@dataclass(frozen=True)
class Slurm:
    """What a user of the cluster does, with their tools."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("SLURM_")}
        return inherited | {"SLURM_CONF": str(self.folder / "slurm.conf"), "PATH": f"{BIN}:{os.environ['PATH']}"}

    def run(self, *command: str, cwd: Path | None = None) -> str:
        done = subprocess.run(command, env=self.environment, cwd=cwd, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def sbatch(self, *arguments: str, cwd: Path) -> int:
        return int(self.run("sbatch", "--parsable", *arguments, cwd=cwd).strip().split(";")[0])

    def job(self, job: int) -> dict[str, str]:
        entries = (entry.partition("=") for entry in self.run("scontrol", "show", "job", "-o", str(job)).split())
        return {key: value for key, _, value in entries}

    def requeue(self, job: int, *how: str) -> None:
        """SLURM starts a requeued job after two minutes; an administrator need not wait so long.

        But not at once: a start in the second in which the old credential was revoked counts as revoked too.
        """
        self.run(*how, str(job))
        end = time.monotonic() + 90
        while self.job(job)["JobState"] != "PENDING":
            assert time.monotonic() < end, f"job {job} did not end to be requeued: {self.job(job)}"
            time.sleep(0.2)
        self.run("scontrol", "update", f"JobId={job}", "StartTime=now+3")

    def wait(self, job: int, limit: float = 180, meanwhile: Callable[[], None] = lambda: None) -> dict[str, str]:
        """The job as SLURM remembers it, once it has ended."""
        end = time.monotonic() + limit
        while (found := self.job(job))["JobState"] not in ENDED:
            if time.monotonic() > end:
                self.run("scancel", str(job))
                raise AssertionError(f"job {job} is {found['JobState']} ({found['Reason']}) after {limit} s")
            meanwhile()
            time.sleep(0.2)
        return found


@contextmanager
def slurm_cluster(folder: Path) -> Iterator[Slurm]:
    """Skips where SLURM is not installed; leaves no process."""
    if missing := [program for program in PROGRAMS if not shutil.which(program, path=_path())]:
        pytest.skip(f"SLURM is not installed ({', '.join(missing)}); Debian has it in slurm-wlm and munge")
    if os.geteuid() != 0:
        pytest.skip("slurmd starts jobs as their users and wants root")
    folder.chmod(0o755)
    _write_settings(folder)
    cluster = Slurm(folder)
    with ExitStack() as daemons:
        _start(daemons, cluster, "munge", "munged", *_munge_arguments(folder))
        _wait_for(cluster, folder / "munge.socket")
        _start(daemons, cluster, "controller", "slurmctld", "-D", "-i", "-c")
        for node in ("n1", "n2"):
            _start(daemons, cluster, node, "slurmd", "-D", "-N", node)
        _wait_for_nodes(cluster)
        try:
            yield cluster
        finally:
            _end_jobs(cluster)


def _path() -> str:
    return f"{os.environ['PATH']}:/usr/sbin:/sbin"


def _munge_arguments(folder: Path) -> list[str]:
    files = [
        f"--{what}={folder}/munge.{what.split('-')[0]}" for what in ("socket", "pid-file", "log-file", "seed-file")
    ]
    return ["--foreground", "--force", "--num-threads=2", f"--key-file={folder}/munge.key", *files]


def _write_settings(folder: Path) -> None:
    key = folder / "munge.key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o400)
    (folder / "state").mkdir()
    host = socket.gethostname().split(".")[0]
    controller, *ports = _free_ports(3)
    nodes = [
        f"NodeName=n{i} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=4 RealMemory=8000 State=UNKNOWN"
        for i, port in enumerate(ports, start=1)
    ]
    text = CONF.format(folder=folder, host=host, controller=controller, nodes="\n".join(nodes))
    (folder / "slurm.conf").write_text(text)


def _free_ports(count: int) -> list[int]:
    with ExitStack() as sockets:
        bound = [sockets.enter_context(socket.socket()) for _ in range(count)]
        for one in bound:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in bound]


def _start(daemons: ExitStack, cluster: Slurm, name: str, program: str, *arguments: str) -> None:
    log = daemons.enter_context((cluster.folder / f"{name}.out").open("w"))
    path = shutil.which(program, path=_path())
    process = subprocess.Popen([str(path), *arguments], stdout=log, stderr=log, env=cluster.environment)
    daemons.callback(_stop, process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(timeout=20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _wait_for(cluster: Slurm, path: Path) -> None:
    end = time.monotonic() + SECONDS_TO_START
    while not path.exists():
        assert time.monotonic() < end, _logs(cluster)
        time.sleep(0.1)


def _wait_for_nodes(cluster: Slurm) -> None:
    end = time.monotonic() + SECONDS_TO_START
    command = ["sinfo", "--noheader", "--Node", "--format=%T"]
    while True:
        asked = subprocess.run(command, env=cluster.environment, capture_output=True, text=True)
        if asked.stdout.split() == ["idle", "idle"]:
            return
        assert time.monotonic() < end, f"{asked.stdout}{asked.stderr}{_logs(cluster)}"
        time.sleep(0.2)


def _end_jobs(cluster: Slurm) -> None:
    """slurmstepd outlives slurmd: the jobs of a test that failed must be gone before the daemons are."""
    subprocess.run(["scancel", "--user=root"], env=cluster.environment, capture_output=True)
    end = time.monotonic() + 60
    while time.monotonic() < end:
        queue = subprocess.run(["squeue", "--noheader"], env=cluster.environment, capture_output=True, text=True)
        if not queue.stdout.strip():
            break
        time.sleep(0.2)
    assert not processes_of(cluster), f"processes left behind: {processes_of(cluster)}"


def processes_of(cluster: Slurm) -> list[int]:
    """Steps and tasks of the cluster's jobs that are alive, found by the settings in their environment."""
    marker = f"SLURM_CONF={cluster.folder / 'slurm.conf'}".encode()
    found = []
    for folder in Path("/proc").iterdir():
        try:
            entries = folder.joinpath("environ").read_bytes().split(b"\0") if folder.name.isdigit() else []
        except OSError:
            continue
        in_job = any(entry.startswith(b"SLURM_JOB_ID=") for entry in entries)
        if marker in entries and in_job and is_alive(int(folder.name)):
            found.append(int(folder.name))
    return found


def _logs(cluster: Slurm) -> str:
    return "\n".join(f"== {log.name}\n{log.read_text()[-2000:]}" for log in sorted(cluster.folder.glob("*.out")))


if __name__ == "__main__":  # a cluster to play with: python -m tests.helpers.slurm FOLDER
    with slurm_cluster(Path(sys.argv[1])):
        sys.stdin.read()
