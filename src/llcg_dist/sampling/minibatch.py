"""Mini-batches: which training nodes, which of their neighbours, which rows of features.

None of it depends on the model, so a batch can be drawn before the model is there, and has the same bits then.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from llcg_dist import seeding
from llcg_dist.data.csr import Topology
from llcg_dist.data.feature_rows import Rows
from llcg_dist.data.rows import Array
from llcg_dist.data.views import View
from llcg_dist.sampling.block import Block

PREFETCH_BYTES = 128 << 20
"""What prefetched batches may hold in all; one is always drawn, for its step would have to hold it too."""

Fanout = int | float
"""-1: all neighbours; a whole number: so many of each node's; a number in (0, 1): that share of each node's."""


@dataclass(frozen=True)
class Sample:
    """Sampled neighbours of `seeds`: the nodes whose features are read, and a block per layer, input side first."""

    nodes: Tensor
    seeds: Tensor
    blocks: Sequence[Block]


class Sampler(Protocol):
    def sample(self, seeds: Array, seed: int) -> Sample: ...


MakeSampler = Callable[[Topology, Sequence[Fanout], str], Sampler]
"""(topology, fan-out of each layer, sampling.method) -> sampler. NeighborSampler is one; training/ is given it."""


def fanouts_per_layer(fanout: Fanout | list[Fanout], depth: int) -> list[Fanout]:
    """One number serves every layer; a list has one per layer."""
    return list(fanout) if isinstance(fanout, list) else [fanout] * depth


@dataclass(frozen=True)
class Batch:
    """What one step computes on: a sample with its rows of features and the labels of its seeds."""

    nodes: Tensor
    """The node of every row of features, numbered as in the view."""
    features: Rows
    labels: Tensor
    blocks: Sequence[Block]

    @property
    def nbytes(self) -> int:
        tensors = [tensor for block in self.blocks for tensor in (block.indptr, block.indices, block.degree)]
        return self.features.nbytes + sum(tensor.nbytes for tensor in (self.labels, *tensors))

    def to(self, device: str) -> "Batch":
        """On this device, with features in float32: a store may hold half precision."""
        blocks = [block.to(device) for block in self.blocks]
        return Batch(self.nodes, self.features.to(device).float(), self.labels.to(device), blocks)


def load_batch(view: View, sampler: Sampler, seeds: Array, seed: int) -> Batch:
    """Samples the neighbourhood of `seeds` and reads its features and labels from the view."""
    sample = sampler.sample(seeds, seed=seed)
    return Batch(sample.nodes, view.features(sample.nodes), view.labels(sample.seeds), sample.blocks)


class BatchStream:
    """The mini-batches of one round in their order: a function of (seed, stream, round)."""

    def __init__(self, view: View, sampler: Sampler, batch_size: int, seed: int, stream: int, round_: int) -> None:
        self._view, self._sampler, self.round = view, sampler, round_
        self._size = min(batch_size, len(view.train_nodes))
        self._rng = seeding.generator(seed, stream, round_)
        self.torch_seed = seeding.torch_seed(self._rng)
        """Of the round's dropout."""
        self._prefetched: deque[Batch] = deque()

    def next(self) -> Batch:
        return self._prefetched.popleft() if self._prefetched else self._draw()

    def prefetch(self, count: int, most_bytes: int = PREFETCH_BYTES) -> None:
        """Draws the next batches before they are asked for: `count` of them, or as many as fit."""
        held = 0
        while len(self._prefetched) < count and held * (1 + 1 / max(1, len(self._prefetched))) <= most_bytes:
            self._prefetched.append(self._draw())
            held += self._prefetched[-1].nbytes

    def _draw(self) -> Batch:
        seeds = self._rng.choice(self._view.train_nodes, self._size, replace=False)
        return load_batch(self._view, self._sampler, seeds, int(self._rng.integers(2**31)))
