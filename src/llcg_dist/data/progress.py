"""How far the main thread of this process is: what it works on, how often it has moved on, and whether it waits.

Loops call `advance` once for every unit of work. comm/liveness.py tells the other ranks, which limit how long one may
stay where it is (cluster.stall_timeout); a job of one process tells nobody.
"""

import contextlib
import ctypes
import mmap
import sys
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Report:
    """A moment of a rank's main thread."""

    moves: int = 0
    """Grows with every unit of work: a rank has moved on where it is another number."""
    waits: bool = False
    """For another rank."""
    place: str = "the start"

    def encode(self) -> str:
        return f"{self.moves} {'waits' if self.waits else 'works'} {self.place}"

    @staticmethod
    def decode(text: str) -> "Report":
        """What `encode` wrote; ValueError for anything else."""
        moves, state, place = text.split(" ", 2)
        if state not in ("waits", "works"):
            raise ValueError(f"a rank either waits or works: {text}")
        return Report(int(moves), state == "waits", place)


class _Position:
    """Written by the main thread, read by the thread of the heartbeat."""

    def __init__(self) -> None:
        self.moves = self.units = self.waits = 0
        self.work = "the start"
        self.shared: ctypes.c_uint64 | None = None


_here = _Position()


def begin(work: str) -> None:
    """The main thread turns to another piece of work, such as `round 3`."""
    _here.work, _here.units = work, 0
    _here.moves += 1


def advance() -> None:
    """One more unit of it is done: a step, a chunk of nodes, a block of a file."""
    _here.units += 1
    _here.moves += 1
    if _here.shared is not None:
        _here.shared.value = _here.moves


@contextlib.contextmanager
def waiting() -> Iterator[None]:
    """While the main thread waits for another rank, its staying where it is is that one's."""
    _here.waits += 1
    try:
        yield
    finally:
        _here.waits -= 1
        _here.moves += 1


def share(memory: mmap.mmap) -> None:
    """For a process that works for another: whoever maps the same memory sees it move on (`moves_in`)."""
    _here.shared = ctypes.c_uint64.from_buffer(memory)


def moves_in(memory: mmap.mmap) -> int:
    """How often the process that shares this memory has moved on."""
    return int.from_bytes(memory[: ctypes.sizeof(ctypes.c_uint64)], sys.byteorder)


def report() -> Report:
    """Where the main thread is now."""
    return Report(_here.moves, _here.waits > 0, f"{_here.work}, unit {_here.units}")
