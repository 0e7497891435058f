"""How far the main thread of this process is: what it works on, how often it has moved on, and whether it waits.

Loops call `advance` once for every unit of work. comm/liveness.py tells the other ranks, which limit how long one may
stay where it is (cluster.stall_timeout); a job of one process tells nobody.
"""

import contextlib
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


_here = _Position()


def begin(work: str) -> None:
    """The main thread turns to another piece of work, such as `round 3`."""
    _here.work, _here.units = work, 0
    _here.moves += 1


def advance() -> None:
    """One more unit of it is done: a step, a chunk of nodes, a block of a file."""
    _here.units += 1
    _here.moves += 1


@contextlib.contextmanager
def waiting() -> Iterator[None]:
    """While the main thread waits for another rank, its staying where it is is that one's."""
    _here.waits += 1
    try:
        yield
    finally:
        _here.waits -= 1
        _here.moves += 1


def report() -> Report:
    """Where the main thread is now."""
    return Report(_here.moves, _here.waits > 0, f"{_here.work}, unit {_here.units}")
