"""Runs a command and watches the memory of its whole process tree, as the sum of PSS, and the CPU time that it takes.

PSS counts a page that n processes share as 1/n for each, so the sum over a tree is what the tree occupies. Its
file-backed part is page cache: pages of mapped files, which the kernel takes back when memory gets short.
"""

import os
import resource
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_FIELDS = {"Pss": "total", "Pss_Anon": "anonymous", "Pss_File": "file"}
_OFTEN, _SHARE = 0.2, 0.1
"""Seconds between two looks, at the least, and the share of the time that looking may take: PSS counts all pages."""


@dataclass
class Peak:
    """The most bytes that a process tree held at one moment."""

    total: int = 0
    anonymous: int = 0
    file: int = 0

    def raise_to(self, seen: "Peak") -> None:
        """Takes over whatever is higher in `other`; the highest values need not have come at the same moment."""
        for name in vars(self):
            setattr(self, name, max(getattr(self, name), getattr(seen, name)))

    def __add__(self, other: "Peak") -> "Peak":
        return Peak(self.total + other.total, self.anonymous + other.anonymous, self.file + other.file)


@dataclass
class Stage:
    """A stage of the command, from the line of its output that begins it to the next such line, and its peak."""

    name: str
    seconds: float = 0.0
    cpu: float = 0.0
    """CPU seconds of the tree: unlike `seconds`, hardly longer on a host that others use."""
    others: float = 0.0
    """CPU seconds that all other processes of the host took meanwhile."""
    peak: Peak = field(default_factory=Peak)
    """Of the tree."""
    ranks: dict[int, Peak] = field(default_factory=dict)
    """Of each rank: 0 is the server."""
    disk: int = 0
    """The most bytes of the files in the folder that was watched, and of those that have no name there any more."""


def watch(
    command: Sequence[str],
    environment: Mapping[str, str],
    stage_of: Callable[[str], str | None],
    folder: Path | None = None,
) -> tuple[list[Stage], list[str]]:
    """Runs the command; `stage_of` tells of a line that it prints which stage begins there, if any. With a folder, what
    its files occupy is watched, too."""
    stages, lines = [Stage("start")], []
    cpu_before, host_before = _cpu_of_children(), _cpu_of_host()
    job = subprocess.Popen(command, env=os.environ | environment, stdout=subprocess.PIPE, text=True)
    done = threading.Event()
    watcher = threading.Thread(target=_look_until, args=(done, job.pid, stages, folder))
    watcher.start()
    began = time.perf_counter()
    try:
        assert job.stdout is not None
        for line in job.stdout:
            lines.append(line.rstrip())
            name = stage_of(lines[-1])
            if name is not None:
                if stages[-1].peak.total == 0:  # it was short; what is seen now is the nearest to it
                    stages[-1].peak.raise_to(_look(job.pid)[0])
                now = time.perf_counter()
                stages[-1].seconds, began = now - began, now
                _note_cpu(stages, _cpu(job.pid), _cpu_of_host() - host_before)
                stages.append(Stage(name))
        if job.wait() != 0:
            raise SystemExit(f"{' '.join(command)} ended with {job.returncode}: {' / '.join(lines[-3:])}")
    finally:
        done.set()
        watcher.join()
        if job.poll() is None:
            job.kill()
    stages[-1].seconds = time.perf_counter() - began
    _note_cpu(stages, _cpu_of_children() - cpu_before, _cpu_of_host() - host_before)
    return stages, lines


def _look_until(done: threading.Event, root: int, stages: list[Stage], folder: Path | None) -> None:
    """CPU time is read more often than memory: what a process took is lost where it ends and nobody waits for it."""
    pause = next_look = 0.0
    looked_at: Stage | None = None
    while not done.wait(pause):
        pause = _OFTEN
        _note_cpu(stages, _cpu(root), None)
        stage = stages[-1]
        if time.perf_counter() < next_look and stage is looked_at:
            continue
        looked_at, cpu_before = stage, time.thread_time()
        together, ranks = _look(root)
        stage.peak.raise_to(together)
        for rank, seen in ranks.items():
            stage.ranks.setdefault(rank, Peak()).raise_to(seen)
        stage.disk = max(stage.disk, _disk(folder) + _unnamed(root, folder) if folder else 0)
        # By CPU time: by the clock a look on a busy host would take long, and the next one would come too late.
        next_look = time.perf_counter() + (time.thread_time() - cpu_before) / _SHARE


def _look(root: int) -> tuple[Peak, dict[int, Peak]]:
    """The bytes that the process tree holds now, in all and by rank."""
    together, ranks = Peak(), {}
    for process in _tree(root):
        seen, rank = _pss(process), _rank(process)
        together += seen
        if rank is not None:
            ranks[rank] = seen
    return together, ranks


def _disk(folder: Path) -> int:
    """Bytes that the files below a folder occupy."""
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(path, name)).st_blocks * 512
            except OSError:  # removed since
                continue
    return total


def _unnamed(root: int, folder: Path) -> int:
    """Bytes of files that were made below a folder and removed, and that a process of the tree has mapped still."""
    found = dict[tuple[int, int], int]()
    for process in _tree(root):
        try:
            for mapped in os.scandir(f"/proc/{process}/map_files"):
                path = os.readlink(mapped.path)
                if path.startswith(f"{folder}/") and path.endswith(" (deleted)"):
                    file = os.stat(mapped.path)
                    found[file.st_dev, file.st_ino] = file.st_blocks * 512
        except OSError:  # the process has ended since, or may not be looked into
            continue
    return sum(found.values())


def _tree(root: int) -> list[int]:
    found = [root]
    for process in found:
        for children in Path(f"/proc/{process}/task").glob("*/children"):
            try:
                found += map(int, children.read_text().split())
            except OSError:  # the thread has ended since
                continue
    return found


def _note_cpu(stages: list[Stage], tree: float, host: float | None) -> None:
    """The last stage took what is left of these CPU seconds since the start, of the tree and of the host. Processes
    that nobody waits for are known only while they are there: what was seen of them counts."""
    *before, last = stages
    last.cpu = max(last.cpu, tree - sum(stage.cpu for stage in before))
    if host is not None:
        last.others = max(0.0, host - sum(stage.cpu + stage.others for stage in before) - last.cpu)


def _cpu_of_host() -> float:
    """CPU seconds of all processes since the host was started."""
    user, nice, system, _, _, irq, softirq = map(int, Path("/proc/stat").read_text().split()[1:8])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def _cpu(root: int) -> float:
    """CPU seconds of the process tree until now, with those of processes that have ended and were waited for."""
    ticks = 0
    for process in _tree(root):
        try:
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        except OSError:  # the process has ended since
            continue
        ticks += sum(map(int, fields[11:15]))  # utime, stime, and both of the children that were waited for
    return ticks / os.sysconf("SC_CLK_TCK")


def _cpu_of_children() -> float:
    """CPU seconds of all processes that this one has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _pss(process: int) -> Peak:
    seen = Peak()
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:  # the process has ended since
        return seen
    for line in lines:
        key, _, rest = line.partition(":")
        if key in _FIELDS:
            setattr(seen, _FIELDS[key], int(rest.split()[0]) * 1024)
    return seen


def _rank(process: int) -> int | None:
    """The rank of a process, from RANK in its environment; None for a process without one."""
    try:
        settings = Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
    except OSError:
        return None
    return next((int(setting[5:]) for setting in settings if setting.startswith(b"RANK=")), None)
