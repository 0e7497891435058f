"""Elapsed time on two clocks: seconds that pass, and seconds of CPU that this process uses, its threads together."""

import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Elapsed:
    """What passed between two moments; `now` is a moment, counted from some fixed one."""

    seconds: float = 0.0
    """By the clock."""
    cpu: float = 0.0
    """Of CPU, in all threads of this process: what the work takes that has one core to itself."""

    def __add__(self, other: "Elapsed") -> "Elapsed":
        return Elapsed(self.seconds + other.seconds, self.cpu + other.cpu)

    def __sub__(self, other: "Elapsed") -> "Elapsed":
        return Elapsed(self.seconds - other.seconds, self.cpu - other.cpu)


def now() -> Elapsed:
    return Elapsed(time.perf_counter(), time.process_time())
