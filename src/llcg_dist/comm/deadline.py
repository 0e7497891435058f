"""cluster.deadline: how long a round waits for its last machines, as a multiple of what the median machine takes."""

import math
import statistics
import time
from collections import deque
from collections.abc import Mapping, Sequence

from llcg_dist.comm.waiter import Patience

_REMEMBERED = 1000
"""Answers that the median is taken of, the last ones."""


class Deadline:
    """Learns from every round what an answer takes from the request on, and says when those that are left are late.

    Rounds may have more and more local steps, so it counts in seconds of a step. Before the first round has ended
    nobody is late, and never more than half of the machines that were asked: then all are slow.
    """

    def __init__(self, multiple: float, steps: Sequence[int]) -> None:
        """`steps`: local steps of rounds 1..R."""
        self._multiple, self._steps = multiple, steps
        self._seconds_of_step = deque[float](maxlen=_REMEMBERED)
        self._began, self._round = 0.0, 0

    def begin(self, round_: int) -> None:
        """The machines are asked now."""
        self._began, self._round = time.monotonic(), round_

    def patience(self, asked: int) -> Patience | None:
        """With so many machines that were asked; None: for as long as it takes."""
        if not self._seconds_of_step:
            return None
        median = statistics.median_low(self._seconds_of_step)
        return Patience(self._began + self._multiple * median * self._steps[self._round - 1], -(-asked // 2))

    def note(self, answered: Mapping[int, float | None]) -> None:
        """When each machine that was asked has answered, by time.monotonic; None: it is late."""
        steps = self._steps[self._round - 1]
        ends = (math.inf if moment is None else moment for moment in answered.values())
        self._seconds_of_step.extend((end - self._began) / steps for end in ends)
