"""What this host has: memory, cores, GPUs, network interfaces, versions. Read from the system; no rule is here."""

import importlib.metadata
import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from llcg_dist.comm.network import interfaces, listen_on

TESTED = {
    "python": "3.11",
    "torch": "2.13.0",
    "dgl": "1.1.3",
    "torch-geometric": "2.8.1",
    "hydra-core": "1.3.8",
    "omegaconf": "2.3.1",
    "ogb": "1.3.6",
    "numpy": "2.4.6",
}
"""The versions that the tests run with: those of constraints.txt, which does not travel with the package."""

_UNLIMITED = 1 << 60


@dataclass(frozen=True)
class Host:
    """Memory in bytes; `versions` holds None where a package is missing, `interfaces` an address of each name.

    `cannot_listen` says why no port can be opened on `address`; None where one can.
    """

    memory_total: int
    memory_free: int
    cores: int
    gpus: int
    versions: dict[str, str | None]
    interfaces: dict[str, str]
    wanted_interface: str | None
    address: str
    cannot_listen: str | None


def this_host(interface: str | None = None) -> Host:
    """`interface`: cluster.interface."""
    total, free = memory()
    here = {name: addresses[0] for name, addresses in interfaces().items() if addresses}
    wanted = interface or os.environ.get("GLOO_SOCKET_IFNAME") or None
    address = here.get(wanted or "", "127.0.0.1")
    versions = {name: version(name) for name in TESTED}
    cores = len(os.sched_getaffinity(0))
    return Host(total, free, cores, num_gpus(), versions, here, wanted, address, why_not_listen(address))


def memory(root: Path = Path("/")) -> tuple[int, int]:
    """(what there is, what is free) for this process: the host's, or its control group's where that is less."""
    lines = (line.split() for line in (root / "proc/meminfo").read_text().splitlines())
    known = {words[0]: int(words[1]) * 1024 for words in lines}
    total, free = known["MemTotal:"], known["MemAvailable:"]
    for limit, used in _group_limits(root):
        total, free = min(total, limit), min(free, max(0, limit - used))
    return total, free


def _group_limits(root: Path) -> Iterator[tuple[int, int]]:
    """(limit, used) of each control group around this process, version 1 or 2; cached files do not count as used."""
    try:
        groups = [line.split(":", 2) for line in (root / "proc/self/cgroup").read_text().splitlines()]
    except OSError:
        return
    for _, controllers, path in groups:
        if controllers == "":
            base, names = "sys/fs/cgroup", ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            base, names = (
                "sys/fs/cgroup/memory",
                ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
            )
        else:
            continue
        own = Path(path.lstrip("/"))
        for folder in {root / base / around for around in (own, *own.parents)}:
            limit, used = _number(folder / names[0]), _number(folder / names[1])
            if limit is not None and used is not None and limit < _UNLIMITED:
                yield limit, max(0, used - _cached(folder / "memory.stat", names[2]))


def _number(path: Path) -> int | None:
    """None where the file is not there, or says `max`."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def _cached(path: Path, key: str) -> int:
    try:
        words = (line.split() for line in path.read_text().splitlines())
        return next((int(value) for name, value in words if name == key), 0)
    except (OSError, ValueError):
        return 0


def why_not_listen(address: str) -> str | None:
    """Opens a port, any port, and closes it again."""
    try:
        listen_on(address, 0).close()
    except OSError as error:
        return error.strerror or str(error)
    return None


def version(package: str) -> str | None:
    if package == "python":
        return platform.python_version()
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def num_gpus() -> int:
    import torch

    return torch.cuda.device_count()
