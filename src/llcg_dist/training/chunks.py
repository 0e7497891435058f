"""Runs of nodes that a pass over a full graph computes at a time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from llcg_dist.data import progress
from llcg_dist.data.rows import Array
from llcg_dist.sampling.block import EDGES_PER_NODE


@dataclass(frozen=True)
class Chunk:
    """Nodes start..stop-1, of which those in the mask `wanted` [stop - start] are computed (None: all)."""

    start: int
    stop: int
    wanted: Tensor | None

    def rows(self, state: Tensor) -> Tensor:
        """The rows of the wanted nodes of a state [N, width]."""
        rows = state[self.start : self.stop]
        return rows if self.wanted is None else rows[self.wanted]

    def within(self, rows: Tensor, mask: Tensor | None) -> tuple["Chunk", Tensor] | None:
        """The chunk of those wanted nodes that a mask [N] holds (None: all), and of `rows` [wanted] theirs; None where
        there are none."""
        kept = None if mask is None else mask[self.start : self.stop]
        if kept is None or kept.all():
            return self, rows
        wanted = kept if self.wanted is None else kept & self.wanted
        if not wanted.any():
            return None
        return Chunk(self.start, self.stop, wanted), rows[wanted if self.wanted is None else wanted[self.wanted]]

    def write(self, rows: Tensor, state: Tensor) -> None:
        """Writes the rows of the wanted nodes into a state [N, width]."""
        target = state[self.start : self.stop]
        if self.wanted is None:
            target.copy_(rows)
        else:
            target[self.wanted] = rows.to(target.dtype)


def chunks_of(bounds: Sequence[tuple[int, int]], wanted: Tensor | None) -> Iterator[Chunk]:
    """The chunks that hold nodes of the mask `wanted` [N] (None: all chunks)."""
    for start, stop in bounds:
        mask = None if wanted is None else wanted[start:stop]
        progress.advance()
        if mask is None or mask.any():
            yield Chunk(start, stop, None if mask is None or mask.all() else mask)


def chunk_bounds(indptr: Array, chunk: int) -> list[tuple[int, int]]:
    """(start, stop) of runs of at most `chunk` nodes and 8 * `chunk` edges (or one node) that cover the graph."""
    bounds, start, num_nodes = [], 0, len(indptr) - 1
    while start < num_nodes:
        edges_end = np.searchsorted(indptr, int(indptr[start]) + EDGES_PER_NODE * chunk, side="right") - 1
        stop = max(start + 1, min(start + chunk, int(edges_end), num_nodes))
        bounds.append((start, stop))
        start = stop
    return bounds
