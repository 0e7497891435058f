"""algorithm.balance_speed: local steps in proportion to the speed of each machine, planned before the first round.

The plan follows from one number per machine. They are measured once, or given as algorithm.speeds, and then an input of
the run, as the ratio of S=fill is (training/fill_plan.py): a resumed run, and one on loopback with the same numbers,
has the same bits.
"""

import math
import statistics
from collections.abc import Sequence
from itertools import accumulate, pairwise


def measured_speeds(step_seconds: Sequence[float]) -> list[float]:
    """Of every machine, 1 for the fastest, from the CPU seconds of a local step at each."""
    fastest = min(step_seconds)
    return [fastest / seconds for seconds in step_seconds]


def shares(speeds: Sequence[float]) -> list[float]:
    """What each machine takes of a round's local steps, as a multiple of their number; the mean is 1."""
    mean = statistics.fmean(speeds)
    return [speed / mean for speed in speeds]


def balanced_steps(steps: Sequence[int], share: float) -> list[int]:
    """Steps of a machine with this share in rounds 1..R, where `steps` are those of the plan: at least one, and rounded
    so that the rounds so far have share times as many as planned."""
    totals = [math.floor(share * total + 0.5) for total in accumulate(steps, initial=0)]
    return [max(1, after - before) for before, after in pairwise(totals)]
