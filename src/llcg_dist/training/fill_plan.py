"""algorithm.S=fill: the correction steps of every round, planned before the first one.

The plan follows from one number, the steps of the server that take as long as one local step. It is measured once, or
given as algorithm.fill_ratio, and then an input of the run: S never depends on the clock of the moment, so that a
resumed run, and one on loopback with the same number, has the same bits.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from llcg_dist.stopwatch import now
from llcg_dist.training.trainer import Trainer

_WARM_UP_STEPS, _MEASURED_STEPS = 2, 3


@dataclass(frozen=True)
class FillPlan:
    """How many steps the server takes beside the local steps of a round."""

    ratio: float
    """Steps of the server that take as long as one local step."""
    local_steps: Sequence[int]
    """Of rounds 1..R."""
    max_steps: int
    """algorithm.S_max."""

    def steps(self, round_: int) -> int:
        """As many as fit, rounded down; at least one, at most `max_steps`."""
        fitting = math.floor(min(self.ratio * self.local_steps[round_ - 1], self.max_steps))
        return max(1, fitting)


def fill_ratio(local_steps: Sequence[float], server_step: float) -> float:
    """From CPU seconds: of one planned step at every machine, the slowest of which the server waits for, and of one of
    the server's."""
    return max(local_steps) / server_step


def seconds_of_step(trainer: Trainer, theta: Tensor) -> float:
    """CPU seconds of one step: the median of a few trial steps from `theta`, after some that warm the caches.

    The trainer is not to be used afterwards: its optimiser has moved.
    """
    trainer.begin_round(theta, 0)
    measured = []
    for _ in range(_WARM_UP_STEPS + _MEASURED_STEPS):
        started = now()
        trainer.backward()
        trainer.optimizer_step()
        measured.append((now() - started).cpu)
    return max(statistics.median(measured[_WARM_UP_STEPS:]), 1e-9)
