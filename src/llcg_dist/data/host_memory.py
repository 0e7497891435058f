"""The memory that this process can have: the host's, or its control groups' or its own limit where these are less."""

import resource
from collections.abc import Iterator
from pathlib import Path

_UNLIMITED_BYTES = 1 << 60
"""Memory limits of control groups at or above this stand for no limit."""


def memory(root: Path = Path("/")) -> tuple[int, int]:
    """(total, free) bytes of memory for this process: the host's, or its control groups' or its own limit (ulimit -d)
    where these are less."""
    lines = (line.split() for line in (root / "proc/meminfo").read_text().splitlines())
    meminfo = {words[0]: int(words[1]) * 1024 for words in lines}
    total, free = meminfo["MemTotal:"], meminfo["MemAvailable:"]
    limits = [*_cgroup_limits(root)]
    if own := own_limit():
        limits.append((own, 1024 * _read_stat(root / "proc/self/status", "VmData:")))
    for limit, used in limits:
        total, free = min(total, limit), min(free, max(0, limit - used))
    return total, free


def own_limit() -> int | None:
    """Bytes that this process may hold for itself (ulimit -d); None where they are not limited."""
    limit, _ = resource.getrlimit(resource.RLIMIT_DATA)
    return None if limit == resource.RLIM_INFINITY else limit


def _cgroup_limits(root: Path) -> Iterator[tuple[int, int]]:
    """(limit, used) bytes of each control group (cgroup v1 or v2) of this process; used excludes the page cache."""
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
        group = Path(path.lstrip("/"))
        for folder in {root / base / ancestor for ancestor in (group, *group.parents)}:
            limit, used = _read_int(folder / names[0]), _read_int(folder / names[1])
            if limit is not None and used is not None and limit < _UNLIMITED_BYTES:
                yield limit, max(0, used - _read_stat(folder / "memory.stat", names[2]))


def _read_int(path: Path) -> int | None:
    """The number in a file; None if there is no such file, or it holds `max`."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def _read_stat(path: Path, key: str) -> int:
    """The number after `key` in a file of such lines; 0 if it is not there."""
    try:
        words = (line.split() for line in path.read_text().splitlines())
        return next((int(found[1]) for found in words if found[:1] == [key]), 0)
    except (OSError, ValueError):
        return 0
