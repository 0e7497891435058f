"""Updates of machines that a round has ended without (cluster.deadline): what becomes of them (cluster.late)."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import torch
from torch import Tensor


class LateModel(Protocol):
    """A machine's model that came after its round had ended."""

    @property
    def part(self) -> int: ...

    @property
    def round(self) -> int:
        """In which the machine was asked for it."""

    @property
    def start(self) -> Tensor:
        """[n]: the model that it started from."""

    @property
    def model(self) -> Tensor:
        """[n]"""


class LateUpdates:
    """Takes late updates into the round after they have come. Every part keeps one voice at most: with d = 1/(1+age),
    age in rounds, a late update has d of its part's weight, and the model that the part has in this round besides (its
    machine's, or that of a server that stands in) has the rest.

    The update, not the model, is taken over: it is added to the model that this round started from. BatchNorm's running
    statistics are values, and stay as they came.
    """

    def __init__(self, statistics: Tensor) -> None:
        """`statistics` [n] of bool: where a model holds running statistics."""
        self._statistics, self._waiting = statistics, list[LateModel]()

    def add(self, models: Sequence[LateModel]) -> None:
        self._waiting += models

    def join(
        self, models: Mapping[int, Tensor], start: Tensor, round_: int
    ) -> tuple[dict[int, Tensor], dict[int, float]]:
        """The round's models by part, in order, each [n] and with what has come late; and the share of its weight that
        a part has, where that is not the whole. `start`: what the round's machines started from."""
        joined, shares = dict(models), dict[int, float]()
        for late in self._waiting:
            share = 1.0 / (1 + round_ - late.round)
            moved = torch.where(self._statistics, late.model, start + (late.model - late.start))
            if late.part in models:
                moved = share * moved + (1 - share) * models[late.part]
            else:
                shares[late.part] = share
            joined[late.part] = moved
        self._waiting = []
        return dict(sorted(joined.items())), shares
