"""Screening of what machines send before it is averaged: one NaN or infinity would spoil the averaged model."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from llcg_dist.config.schema import Config, OnNonfinite
from llcg_dist.errors import TrainingError
from llcg_dist.training.flat_vector import is_finite


@dataclass(frozen=True)
class Models:
    """What the machines made of `start` in a round, as far as it may be averaged; in part order."""

    round: int
    start: Tensor
    """The model that the machines started from."""
    vectors: list[Tensor]
    weights: list[float]
    """By algorithm.averaging."""
    skipped: list[int]
    """Parts whose model was not finite."""
    statistics: Tensor
    """[n] of bool: True where a vector holds BatchNorm's running statistics."""


class Screener:
    """Sorts out vectors that are not finite, or ends the run, as on_nonfinite says."""

    def __init__(self, config: Config, weights: Sequence[float], statistics: Tensor) -> None:
        """`weights`: of every part in the average. `statistics`: see Models."""
        self._skips, self._lr = config.on_nonfinite == OnNonfinite.skip, config.train.local_lr
        self.weights, self._statistics = list(weights), statistics

    def models(self, vectors: Sequence[Tensor], losses: Sequence[float], start: Tensor, round_: int) -> Models:
        """`losses`: the machines' mean training loss, for the message."""
        finite = self._finite(vectors, start.numel())
        skipped = [part for part, good in enumerate(finite) if not good]
        for part in skipped:
            what = f"parameters that are not finite in round {round_} (its loss {losses[part]:.4g})"
            self._skip_or_fail(f"part {part} sent {what}", any(finite))
        kept = [part for part, good in enumerate(finite) if good]
        chosen = [vectors[part] for part in kept]
        return Models(round_, start, chosen, [self.weights[part] for part in kept], skipped, self._statistics)

    def gradients(self, vectors: Sequence[Tensor], size: int, round_: int) -> tuple[list[Tensor], list[float]]:
        """The gradients of one step that may be averaged, and their weights."""
        finite = self._finite(vectors, size)
        for part, good in enumerate(finite):
            if not good:
                self._skip_or_fail(f"part {part} sent a gradient that is not finite in round {round_}", any(finite))
        kept = [part for part, good in enumerate(finite) if good]
        return [vectors[part] for part in kept], [self.weights[part] for part in kept]

    def _finite(self, vectors: Sequence[Tensor], size: int) -> list[bool]:
        """A wrong shape or weight is a defect, not data, and raises ValueError."""
        for part, (vector, weight) in enumerate(zip(vectors, self.weights, strict=True)):
            if vector.shape != (size,) or vector.dtype != torch.float32:
                raise ValueError(f"part {part} sent {vector.dtype}{list(vector.shape)}, not float32[{size}]")
            if not 0 < weight < float("inf"):
                raise ValueError(f"part {part} has the weight {weight}")
        return [is_finite(vector) for vector in vectors]

    def _skip_or_fail(self, happened: str, others_are_finite: bool) -> None:
        """Ends the run, unless the others' values can stand for the bad one."""
        if not self._skips or not others_are_finite:
            advice = f"lower train.local_lr (now {self._lr:g}), or average the others with on_nonfinite=skip"
            raise TrainingError(f"{happened}; {advice}")
