"""Screening of what machines send before it is averaged: one NaN or one huge update would spoil the averaged model."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from llcg_dist.config.algorithm import Screen
from llcg_dist.config.schema import Config, OnNonfinite
from llcg_dist.errors import TrainingError
from llcg_dist.training.flat_vector import is_finite
from llcg_dist.training.judging import PARAMETERS, STATISTICS, Judge, Lengths, Verdict
from llcg_dist.training.late_updates import LateUpdates

log = logging.getLogger(__name__)

_DONE = {Screen.warn: "used as it is", Screen.clip: "shortened to that", Screen.refuse: "left out of the average"}


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
    parts: list[int] = field(default_factory=list)
    """Whose the vectors are."""
    notes: dict[str, Any] = field(default_factory=dict)
    """Columns of the round's record: the length of every update, and what was done about those that are too long."""
    warnings: list[str] = field(default_factory=list)


class Screener:
    """Sorts out vectors that are not finite, or ends the run, as on_nonfinite says; judges updates by their length, as
    algorithm.screen says."""

    def __init__(
        self, config: Config, weights: Sequence[float], statistics: Tensor, names: Sequence[str], judges: bool = True
    ) -> None:
        """`weights` of every part in the average, and `names` of their machines. `statistics`: see Models. `judges`:
        whether models of several machines are averaged."""
        self._screen, self._lr = config.algorithm.screen, config.train.local_lr
        self._skips = config.on_nonfinite == OnNonfinite.skip or self._screen == Screen.refuse
        self.weights, self._names, self._statistics = list(weights), list(names), statistics
        self._judge = Judge(config.algorithm, statistics) if judges and self._screen != Screen.off else None
        self._last_warning = ""
        self.late_updates = LateUpdates(statistics)
        """What has come after its round had ended, and joins the next."""

    def models(
        self,
        vectors: Sequence[Tensor],
        losses: Sequence[float],
        start: Tensor,
        round_: int,
        parts: Sequence[int] | None = None,
        shares: Mapping[int, float] | None = None,
    ) -> Models:
        """`losses`: the machines' mean training loss, for the message. `parts`: whose the vectors are, where they are
        not of every part. `shares`: of its weight, by part, where it is not the whole."""
        of = range(len(self.weights)) if parts is None else parts
        finite = dict(zip(of, self._finite(vectors, start.numel(), of), strict=True))
        skipped = [part for part, good in finite.items() if not good]
        for part, loss in zip(of, losses, strict=True):
            if part in skipped:
                what = f"parameters that are not finite in round {round_} (its loss {loss:.4g})"
                self._skip_or_fail(f"{self._names[part]} sent {what}", any(finite.values()))
        kept = {part: vector for part, vector in zip(of, vectors, strict=True) if finite[part]}
        notes, warnings = self._judged(kept, start, round_) if self._judge and kept else ({}, [])
        weights = [self.weights[part] * (shares or {}).get(part, 1.0) for part in kept]
        vectors, parts = list(kept.values()), list(kept)
        return Models(round_, start, vectors, weights, skipped, self._statistics, parts, notes, warnings)

    def gradients(self, vectors: Sequence[Tensor], size: int, round_: int) -> tuple[list[Tensor], list[float]]:
        """The gradients of one step that may be averaged, and their weights."""
        finite = self._finite(vectors, size, range(len(self.weights)))
        for part, good in enumerate(finite):
            if not good:
                what = f"{self._names[part]} sent a gradient that is not finite in round {round_}"
                self._skip_or_fail(what, any(finite))
        kept = [part for part, good in enumerate(finite) if good]
        return [vectors[part] for part in kept], [self.weights[part] for part in kept]

    def _judged(self, kept: dict[int, Tensor], start: Tensor, round_: int) -> tuple[dict[str, Any], list[str]]:
        """Columns and warnings of a round. Updates that are too long are taken out of `kept`, or shortened there."""
        assert self._judge is not None
        lengths, parts = self._judge.lengths(list(kept.values()), start), list(kept)
        verdicts, warnings = self._judge.verdicts(lengths, parts), list[str]()
        for verdict in verdicts:
            warnings.append(self._warning(verdict))
            log.warning("round %d: %s", round_, warnings[-1])  # now: the correction may fail for it
            if self._screen == Screen.clip:
                kept[verdict.part] = self._judge.shortened(kept[verdict.part], start, lengths)
            elif self._screen == Screen.refuse:
                del kept[verdict.part]
        if not kept:
            raise TrainingError(f"round {round_}: no update is left to average; {warnings[0]}")
        if warnings:
            self._last_warning = f"in round {round_} {warnings[0]}"
        return self._columns(lengths, parts) | {"screened": [self._entry(verdict) for verdict in verdicts]}, warnings

    def _warning(self, verdict: Verdict) -> str:
        assert self._judge is not None
        longer = f"{verdict.of} {verdict.ratio:.3g} times as far from the model it was sent as the median"
        allowed = f"algorithm.screen_factor={self._judge.factor:g}"
        return f"{self._names[verdict.part]} sent {longer} ({allowed}): {_DONE[self._screen]}"

    def _entry(self, verdict: Verdict) -> dict[str, Any]:
        return {"part": verdict.part, "of": verdict.of, "ratio": verdict.ratio, "action": str(self._screen)}

    def _columns(self, lengths: Lengths, parts: Sequence[int]) -> dict[str, Any]:
        """The lengths by part, None where there is none."""
        names = {PARAMETERS: "update_lengths", STATISTICS: "statistics_lengths"}
        columns: dict[str, Any] = {}
        for name, of_name in lengths.items():
            by_part = dict(zip(parts, of_name, strict=True))
            columns[names[name]] = [by_part.get(part) for part in range(len(self.weights))]
        return columns

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
            raise TrainingError("; ".join(filter(None, [happened, self._last_warning, advice])))
