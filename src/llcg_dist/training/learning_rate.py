"""Learning-rate schedules as functions of round and step: there is no scheduler state to checkpoint."""

import math
from collections.abc import Sequence
from itertools import accumulate

from llcg_dist.config.train import LrSchedule, LrUnit, TrainConfig


def lr_factor(schedule: LrSchedule, index: int, total: int, warmup: float, end: float = 1.0) -> float:
    """The factor on the learning rate at position `index` of 0..total-1; later positions keep the last factor.

    constant: 1. cosine: (1 + cos(pi·index/total)) / 2, which is never 0. warmup: the first round(warmup·total)
    positions rise in equal steps to 1. warmup_cosine: after the warm-up, the remaining positions follow the cosine.
    cosine_end: the last ceil(end·total) positions follow it, those before have 1.
    """
    index = min(index, total - 1)
    if schedule == LrSchedule.cosine_end:
        length = math.ceil(end * total)
        return _cosine(max(0, index - (total - length)), length)
    warmup_length = math.floor(warmup * total + 0.5) if schedule in (LrSchedule.warmup, LrSchedule.warmup_cosine) else 0
    if index < warmup_length:
        return (index + 1) / (warmup_length + 1)
    if schedule in (LrSchedule.constant, LrSchedule.warmup):
        return 1.0
    return _cosine(index - warmup_length, total - warmup_length)


def _cosine(index: int, total: int) -> float:
    return (1 + math.cos(math.pi * index / total)) / 2


class LearningRates:
    """The learning-rate factors of one run, for the machines' local steps and the server's correction steps."""

    def __init__(self, config: TrainConfig, steps: Sequence[int], planned_rounds: int) -> None:
        """`steps`: local steps of each round. With none (server_only) the schedule advances by rounds."""
        self._config, self._rounds = config, planned_rounds
        self._steps_before = [0, *accumulate(steps)]
        """[r-1]: local steps before round r."""
        self._advances_by_step = config.lr_unit == LrUnit.steps and self._steps_before[planned_rounds] > 0

    def machine(self, round_: int, step: int) -> float:
        """The factor of local step `step` (from 0) of a round (from 1)."""
        if self._advances_by_step:
            return self._factor(self._steps_before[round_ - 1] + step, self._steps_before[self._rounds])
        return self._factor(round_ - 1, self._rounds)

    def server(self, round_: int, step: int) -> float:
        """The factor of every correction step of a round, for any S: that of the round's first local step."""
        return self.machine(round_, 0)

    def _factor(self, index: int, total: int) -> float:
        config = self._config
        return lr_factor(config.lr_schedule, index, total, config.lr_warmup, config.lr_end)
