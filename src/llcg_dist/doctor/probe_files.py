"""Measures what this host takes for a byte that is written, read, hashed, copied, or put into a new page of memory."""

import hashlib
import mmap
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from llcg_dist.data.array_writer import ArrayWriter
from llcg_dist.data.rows import Array, first_nonfinite

_BYTES = 1 << 26
"""Bytes that are written, copied and hashed."""
_NEW_PAGE = 1.5e-9
"""CPU seconds, fitted to bench.scale at one and four times ogbn-products' size on one virtual machine."""
_LOOKS, _PAUSE = 3, 1.0
"""A disk that still flushes what others wrote, or another process, is over after a second or two: the middle look
counts."""


def cpu_seconds(work: Callable[[], object], repeats: int = 2) -> float:
    """The shortest of some repeats: whatever else the host does makes them longer."""
    taken = []
    for _ in range(repeats):
        started = time.process_time()
        work()
        taken.append(time.process_time() - started)
    return max(min(taken), 1e-9)


def middle_look(look: Callable[[Path], dict[str, float]], scratch: Path) -> dict[str, float]:
    """The median of every rate over some looks, a second apart, each with an empty folder."""
    looks: list[dict[str, float]] = []
    for _ in range(_LOOKS):
        if looks:
            time.sleep(_PAUSE)
        with tempfile.TemporaryDirectory(dir=scratch) as folder:
            looks.append(look(Path(folder)))
    return {name: statistics.median(rates[name] for rates in looks) for name in looks[0]}


def file_rates(folder: Path) -> dict[str, float]:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((_BYTES // 400, 100), dtype=np.float32)
    path = folder / "rows.npy"

    def write() -> None:
        writer = ArrayWriter(path, rows.dtype, rows.shape[1:])
        writer.append(rows)
        writer.finish()

    written = cpu_seconds(write)
    began = time.perf_counter()
    with path.open("rb") as file:
        os.fsync(file.fileno())
    synced = time.perf_counter() - began
    read_byte, read_wait = _reading(path, rng.permutation(len(rows)), np.empty_like(rows))
    mapped = np.load(path, mmap_mode="r")
    picked = np.arange(0, len(rows), 2)
    return {
        "draw_number": cpu_seconds(lambda: rng.standard_normal(rows.shape, dtype=np.float32)) / rows.size,
        "hash_byte": cpu_seconds(lambda: hashlib.sha256(rows.data)) / rows.nbytes,
        "write_byte": written / rows.nbytes + _new_page(),
        "new_page": _new_page(),
        "page_byte": _page_byte(),
        "disk_byte": synced / rows.nbytes,
        "read_byte": read_byte,
        "read_wait": read_wait,
        "scan_value": cpu_seconds(lambda: first_nonfinite(mapped)) / rows.size,
        "copy_byte": cpu_seconds(lambda: mapped[picked]) / (len(picked) * 400),
    }


def _reading(path: Path, rows: Array, into: Array) -> tuple[float, float]:
    """(CPU seconds, seconds by the clock besides) of a byte of these rows, none of which is in memory."""
    with path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    mapped = np.load(path, mmap_mode="r")
    into.fill(0)  # its pages are there
    began, computed = time.perf_counter(), time.process_time()
    np.take(mapped, rows, axis=0, out=into)
    computed = time.process_time() - computed
    waited = max(0.0, time.perf_counter() - began - computed)
    return computed / into.nbytes, waited / into.nbytes


def _page_byte() -> float:
    """CPU seconds of a byte of memory that the kernel has to find a page for."""
    pages = mmap.mmap(-1, _BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory = np.frombuffer(pages, np.uint8)  # which frees them
    return cpu_seconds(lambda: memory[:: mmap.PAGESIZE].fill(1), repeats=1) / _BYTES


def _new_page() -> float:
    """What a byte takes besides that is written into a page which no process had lately, by the host of a virtual
    machine: the few that the probe writes are not new to it."""
    cpus = Path("/proc/cpuinfo")
    return _NEW_PAGE if cpus.exists() and "hypervisor" in cpus.read_text() else 0.0
