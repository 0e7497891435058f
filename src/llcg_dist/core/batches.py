"""Mini-batches: which training nodes, which of their neighbours, which rows of features. None of it depends on the
model, so it can be drawn before the model is there, and has the same bits then.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor

from llcg_dist import seeding
from llcg_dist.data.feature_rows import Rows
from llcg_dist.data.rows import Array
from llcg_dist.data.views import View

AHEAD_BYTES = 128 << 20
"""What batches that are drawn ahead may hold in all; one is always drawn, for its step would have to hold it too."""


class Sampler(Protocol):
    def sample(self, seeds: Array, seed: int) -> Any: ...


@dataclass(frozen=True)
class MiniBatch:
    """What one step computes on, as the store holds it."""

    inputs: Rows
    labels: Tensor
    blocks: Sequence[Any]

    @property
    def nbytes(self) -> int:
        tensors = [tensor for block in self.blocks for tensor in (block.indptr, block.indices, block.degree)]
        return self.inputs.nbytes + sum(tensor.nbytes for tensor in (self.labels, *tensors))


class Batches:
    """The mini-batches of one walk in their order: a function of (seed, who, round)."""

    def __init__(self, view: View, sampler: Sampler, batch_size: int, seed: int, who: int, round_: int) -> None:
        self._view, self._sampler, self.round = view, sampler, round_
        self._size = min(batch_size, len(view.train_nodes))
        self._rng = seeding.generator(seed, who, round_)
        self.torch_seed = seeding.torch_seed(self._rng)
        """Of the walk's dropout."""
        self._ahead: deque[MiniBatch] = deque()

    def next(self) -> MiniBatch:
        return self._ahead.popleft() if self._ahead else self._draw()

    def draw_ahead(self, count: int, most_bytes: int = AHEAD_BYTES) -> None:
        """Draws the next batches before they are asked for: `count` of them, or as many as fit."""
        held = 0
        while len(self._ahead) < count and held * (1 + 1 / max(1, len(self._ahead))) <= most_bytes:
            self._ahead.append(self._draw())
            held += self._ahead[-1].nbytes

    def _draw(self) -> MiniBatch:
        seeds = self._rng.choice(self._view.train_nodes, self._size, replace=False)
        batch = self._sampler.sample(seeds, seed=int(self._rng.integers(2**31)))
        return MiniBatch(self._view.features(batch.inputs), self._view.labels(batch.outputs), batch.blocks)
