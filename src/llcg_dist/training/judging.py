"""Judging updates by their length: one that is much longer than those of the other machines is suspect.

The length is the distance between the model that a machine sent and the one that it was sent, and the measure is the
median over the machines of the round, of an even number the lower one. Machines take the same number of steps at the
same learning rate, so honest ones are close together, in the first round as in the last, whatever the sizes of their
parts. Updates of length 0 do not count: a majority that sent nothing would make every other update too long. What one
machine sends alone has no measure. Of two the shorter is the measure, and which of them is right nobody can tell.

Learned parameters and BatchNorm's running statistics are judged apart: they differ in scale.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from llcg_dist.config.algorithm import AlgorithmConfig, BatchNormStats

PARAMETERS, STATISTICS = "parameters", "running statistics"
Lengths = dict[str, list[float]]
"""Of parameters and running statistics, the length of every update."""


@dataclass(frozen=True)
class Verdict:
    """An update that is too long."""

    part: int
    of: str
    """What is too long: parameters or running statistics."""
    ratio: float
    """Its length over the median."""


class Judge:
    """Finds the updates of a round that are longer than algorithm.screen_factor times the median, and shortens them."""

    def __init__(self, settings: AlgorithmConfig, statistics: Tensor) -> None:
        """`statistics` [n] of bool: True where a vector holds BatchNorm's running statistics. They are judged where
        they are used: with batchnorm_stats=recalibrate the server computes its own."""
        self.factor, self._statistics = settings.screen_factor, statistics.nonzero().flatten()
        used = settings.batchnorm_stats != BatchNormStats.recalibrate and len(self._statistics) > 0
        self._judged = [PARAMETERS, *([STATISTICS] if used else [])]

    def lengths(self, vectors: Sequence[Tensor], start: Tensor) -> Lengths:
        """Distances of the vectors [n] from `start` [n]."""
        found = [self._lengths_of(vector, start) for vector in vectors]
        return {name: [lengths[name] for lengths in found] for name in self._judged}

    def verdicts(self, lengths: Lengths, parts: Sequence[int]) -> list[Verdict]:
        """At most one for each part; `lengths` are those of `parts`, in this order."""
        found: dict[int, Verdict] = {}
        for name, limit in self._limits(lengths).items():
            for part, length in zip(parts, lengths[name], strict=True):
                if length > limit:
                    found.setdefault(part, Verdict(part, name, self.factor * length / limit))
        return [found[part] for part in sorted(found)]

    def shortened(self, vector: Tensor, start: Tensor, lengths: Lengths) -> Tensor:
        """The vector [n] on its straight way from `start` [n], as far as `lengths` of the round allow; running
        statistics that nobody uses are those of `start`, since nobody has judged how far away they are."""
        own, scale = self._lengths_of(vector, start), torch.ones_like(vector, dtype=torch.float64)
        limits = self._limits(lengths)
        scale *= min(1.0, limits[PARAMETERS] / own[PARAMETERS]) if own[PARAMETERS] else 1.0
        ratio = min(1.0, limits.get(STATISTICS, 0.0) / own[STATISTICS]) if own[STATISTICS] else 1.0
        scale[self._statistics] = ratio
        begin = start.double()
        return torch.lerp(begin, vector.double(), scale).float()

    def _limits(self, lengths: Lengths) -> dict[str, float]:
        """The longest that is allowed of each; infinity where there is no measure."""
        medians = {name: lower_median(of_name) for name, of_name in lengths.items()}
        return {name: self.factor * median if median else float("inf") for name, median in medians.items()}

    def _lengths_of(self, vector: Tensor, start: Tensor) -> Mapping[str, float]:
        """Summed in float64, where no square overflows; the difference is float32 unless it overflows itself."""
        found = self._norms(vector - start)
        return found if max(found.values()) < float("inf") else self._norms(vector.double() - start.double())

    def _norms(self, moved: Tensor) -> Mapping[str, float]:
        """Of both groups; `moved` [n] is overwritten."""
        statistics = torch.linalg.vector_norm(moved[self._statistics], dtype=torch.float64).item()
        moved[self._statistics] = 0
        return {PARAMETERS: torch.linalg.vector_norm(moved, dtype=torch.float64).item(), STATISTICS: statistics}


def lower_median(lengths: Sequence[float]) -> float:
    """Of those that are not 0 the one in the middle, or the lower of two; 0 where there is none."""
    moved = sorted(length for length in lengths if length > 0)
    return moved[(len(moved) - 1) // 2] if moved else 0.0
