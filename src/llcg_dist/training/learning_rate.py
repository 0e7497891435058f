"""How far a step goes, by its place in the run: a function of round and step, with no state to save."""

import math
from collections.abc import Sequence
from itertools import accumulate

from llcg_dist.config.schema import TrainConfig


def lr_factor(schedule: str, index: int, total: int, warmup: float) -> float:
    """What a learning rate is multiplied with at place `index` of 0..total-1; later places stay at the last one's.

    cosine: (1 + cos(pi·index/total)) / 2, which is never 0. warmup: the first round(warmup·total) places rise in equal
    steps to 1; warmup_cosine: and the rest falls as a cosine does.
    """
    index = min(index, total - 1)
    rising = math.floor(warmup * total + 0.5) if schedule.startswith("warmup") else 0
    if index < rising:
        return (index + 1) / (rising + 1)
    if schedule in ("constant", "warmup"):
        return 1.0
    return (1 + math.cos(math.pi * (index - rising) / (total - rising))) / 2


class LearningRates:
    """The factors of one run, at the machines and at the server."""

    def __init__(self, config: TrainConfig, steps: Sequence[int], planned_rounds: int) -> None:
        """`steps`: local steps of each round. Where there are none (server_only) rounds are counted."""
        self._config, self._rounds = config, planned_rounds
        self._before = [0, *accumulate(steps)]
        """[r-1]: local steps before round r."""
        self._counts_steps = config.lr_unit == "steps" and self._before[planned_rounds] > 0

    def machine(self, round_: int, step: int) -> float:
        """Of the local step `step` (0 is the first) of a round."""
        if self._counts_steps:
            return self._factor(self._before[round_ - 1] + step, self._before[self._rounds])
        return self._factor(round_ - 1, self._rounds)

    def server(self, round_: int, step: int) -> float:
        """Of a step of the correction: that of the machines' first step in the round, whatever S is."""
        return self.machine(round_, 0)

    def _factor(self, index: int, total: int) -> float:
        return lr_factor(self._config.lr_schedule, index, total, self._config.lr_warmup)
