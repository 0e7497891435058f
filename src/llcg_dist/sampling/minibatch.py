"""Mini-batches: seeds drawn from the training nodes, blocks of their sampled neighbours, features and labels.

Nothing here depends on the model's weights, so batches can be prefetched before the model of a round arrives, without
a change of a bit.
"""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from llcg_dist import seeding
from llcg_dist.config.train import Fanout, Fanouts
from llcg_dist.data.feature_rows import LazyRows, Rows
from llcg_dist.data.rows import Array
from llcg_dist.data.upload import upload
from llcg_dist.data.views import View
from llcg_dist.sampling.block import Block

PREFETCH_BYTES = 128 << 20
"""Limit on the bytes of all prefetched batches together. One batch is always drawn: its step needs it in memory too."""


@dataclass(frozen=True)
class Sample:
    """Sampled neighbourhood of `seeds`: the input nodes and a block per layer, input side first."""

    nodes: Tensor
    seeds: Tensor
    blocks: Sequence[Block]

    @property
    def num_edges(self) -> int:
        return sum(len(block.indices) for block in self.blocks)


class Sampler(Protocol):
    """Samples the multi-hop neighbourhood of seed nodes; deterministic for (seeds, seed)."""

    def sample(self, seeds: Array, seed: int) -> Sample: ...


def fanouts_per_layer(fanout: Fanouts, depth: int) -> list[Fanout]:
    """[depth] fan-outs; a single number is repeated for every layer."""
    return list(fanout) if isinstance(fanout, list) else [fanout] * depth


@dataclass(frozen=True)
class Batch:
    """The input of one gradient step: features of the input nodes, labels of the seeds, and a block per layer."""

    nodes: Tensor
    """The node of every row of `features`, in the numbering of the view."""
    features: Rows
    labels: Tensor
    blocks: Sequence[Block]

    @property
    def nbytes(self) -> int:
        tensors = [tensor for block in self.blocks for tensor in (block.indptr, block.indices, block.degree)]
        return self.features.nbytes + sum(tensor.nbytes for tensor in (self.labels, *tensors))

    def to(self, device: str) -> "Batch":
        """The batch on this device, with features in float32; a store may hold float16."""
        blocks = [block.to(device) for block in self.blocks]
        return Batch(self.nodes, _rows_to(self.features, device).float(), upload(self.labels, device), blocks)

    def tensors(self) -> list[Tensor]:
        """All that a step reads."""
        of_blocks = [(block.indptr, block.indices, block.degree) for block in self.blocks]
        rows = self.features.nodes if isinstance(self.features, LazyRows) else self.features
        return [rows, self.labels, *(tensor for block in of_blocks for tensor in block)]


def _rows_to(rows: Rows, device: str) -> Rows:
    return rows.to(device) if isinstance(rows, LazyRows) else upload(rows, device)


def load_batch(view: View, sampler: Sampler, seeds: Array, seed: int) -> Batch:
    """Samples the neighbourhood of `seeds`, and reads features and labels from the view."""
    sample = sampler.sample(seeds, seed=seed)
    return Batch(sample.nodes, view.features(sample.nodes), view.labels(sample.seeds), sample.blocks)


class BatchStream:
    """The sequence of mini-batches of one round, determined by (seed, stream, round)."""

    def __init__(self, view: View, sampler: Sampler, batch_size: int, key: tuple[int, int, int]) -> None:
        """`key`: seed, stream and round."""
        self._view, self._sampler, (seed, stream, round_) = view, sampler, key
        self.round = round_
        self._size = min(batch_size, len(view.train_nodes))
        self._rng = seeding.generator(seed, stream, round_)
        self.torch_seed = seeding.torch_seed(self._rng)
        """Seed of torch's generator for the dropout of this round."""
        self._prefetched: deque[Batch] = deque()
        self._thread: Executor | None = None
        self._prepared: Callable[[Batch], Batch] = lambda batch: batch
        self._left, self._drawing = 0, deque[Future[Batch]]()

    def draw_ahead(
        self, thread: Executor, count: int, prepared: Callable[[Batch], Batch] = lambda batch: batch
    ) -> None:
        """From now on the next batch is drawn and prepared in this thread while one is used, `count` in all."""
        self._thread, self._prepared, self._left = thread, prepared, count - len(self._prefetched)
        self._draw_in_thread()

    def next(self) -> Batch:
        """The next batch, prefetched or drawn now: the same either way."""
        if self._prefetched:
            return self._prefetched.popleft()
        if not self._drawing:
            return self._draw()
        batch = self._drawing.popleft().result()
        self._draw_in_thread()
        return batch

    def _draw_in_thread(self) -> None:
        if self._thread and self._left > 0:
            self._left -= 1
            self._drawing.append(self._thread.submit(lambda: self._prepared(self._draw())))

    def prefetch(self, count: int, max_bytes: int = PREFETCH_BYTES) -> None:
        """Draws the next `count` batches ahead of time, or as many as fit into `max_bytes`."""
        held_bytes = 0
        while len(self._prefetched) < count and held_bytes * (1 + 1 / max(1, len(self._prefetched))) <= max_bytes:
            self._prefetched.append(self._draw())
            held_bytes += self._prefetched[-1].nbytes

    def _draw(self) -> Batch:
        seeds = self._rng.choice(self._view.train_nodes, self._size, replace=False)
        return load_batch(self._view, self._sampler, seeds, int(self._rng.integers(2**31)))
