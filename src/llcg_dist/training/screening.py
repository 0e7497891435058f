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

    def models(
        self,
        vectors: Sequence[Tensor],
        losses: Sequence[float],
        start: Tensor,
        round_: int,
        parts: Sequence[int] | None = None,
    ) -> Models:
        """`losses`: the machines' mean training loss, for the message. `parts`: whose the vectors are, where they are
        not of every part."""
        of = range(len(self.weights)) if parts is None else parts
        finite = self._finite(vectors, start.numel(), of)
        skipped = [place for place, good in enumerate(finite) if not good]
        for place in skipped:
            what = f"parameters that are not finite in round {round_} (its loss {losses[place]:.4g})"
            self._skip_or_fail(f"part {of[place]} sent {what}", any(finite))
        kept = [place for place, good in enumerate(finite) if good]
        chosen, weights = [vectors[place] for place in kept], [self.weights[of[place]] for place in kept]
        return Models(round_, start, chosen, weights, [of[place] for place in skipped], self._statistics)

    def gradients(self, vectors: Sequence[Tensor], size: int, round_: int) -> tuple[list[Tensor], list[float]]:
        """The gradients of one step that may be averaged, and their weights."""
        finite = self._finite(vectors, size, range(len(self.weights)))
        for part, good in enumerate(finite):
            if not good:
                self._skip_or_fail(f"part {part} sent a gradient that is not finite in round {round_}", any(finite))
        kept = [part for part, good in enumerate(finite) if good]
        return [vectors[part] for part in kept], [self.weights[part] for part in kept]

    def _finite(self, vectors: Sequence[Tensor], size: int, parts: Sequence[int]) -> list[bool]:
        """A wrong shape or weight is a defect, not data, and raises ValueError."""
        for part, vector in zip(parts, vectors, strict=True):
            if vector.shape != (size,) or vector.dtype != torch.float32:
                raise ValueError(f"part {part} sent {vector.dtype}{list(vector.shape)}, not float32[{size}]")
            if not 0 < self.weights[part] < float("inf"):
                raise ValueError(f"part {part} has the weight {self.weights[part]}")
        return [is_finite(vector) for vector in vectors]

    def _skip_or_fail(self, happened: str, others_are_finite: bool) -> None:
        """Ends the run, unless the others' values can stand for the bad one."""
        if not self._skips or not others_are_finite:
            advice = f"lower train.local_lr (now {self._lr:g}), or average the others with on_nonfinite=skip"
            raise TrainingError(f"{happened}; {advice}")
