"""A host with less memory than this one has: this process and all that it starts, in a control group of its own.

What mapped files occupy counts too, so whatever finishes here would finish on a host of that size. Wants root.
"""

import atexit
import os
import time
from pathlib import Path

_V1, _V2 = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")
_LIMITS = {_V1: "memory.limit_in_bytes", _V2: "memory.max"}
_CACHES = Path("/proc/sys/vm/drop_caches")
_LEAVE_SECONDS = 5.0


def confine(gigabytes: float) -> None:
    """From here on until this process ends. SystemExit where the kernel or the user's rights do not allow it."""
    root = group_root()
    group, before = root / f"llcg-{os.getpid()}", root / _own_group().lstrip("/")
    try:
        group.mkdir()
        atexit.register(_leave, group, before)
        (group / _LIMITS[root]).write_text(str(round(gigabytes * 1e9)))
        (group / "cgroup.procs").write_text(str(os.getpid()))
        os.sync()
        _CACHES.write_text("3")  # files that others have read would not count here
    except OSError as error:
        raise SystemExit(f"a control group of {gigabytes:g} GB cannot be made: {error}") from None


def group_root() -> Path:
    """The folder of all groups that limit memory."""
    return _V1 if _V1.is_dir() else _V2


def _own_group() -> str:
    """The path of this process's memory group (v1), or of its only one (v2)."""
    groups = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    return next((path for _, kinds, path in groups if "memory" in kinds.split(",")), groups[-1][2])


def _leave(group: Path, before: Path) -> None:
    (before / "cgroup.procs").write_text(str(os.getpid()))
    end = time.monotonic() + _LEAVE_SECONDS
    while group.exists() and time.monotonic() < end:
        try:
            group.rmdir()
        except OSError:  # what this process has started still ends
            time.sleep(0.1)
