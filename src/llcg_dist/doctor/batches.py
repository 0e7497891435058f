"""How large a mini-batch will be, without building it: a bounded number of edges is read, the rest is extrapolated."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from llcg_dist.data.graph import Graph, neighbours
from llcg_dist.data.rows import Array

EDGES_READ = 1_000_000
"""At most this many per layer (or those of one node): below a second on any graph, from a mapped file too."""


@dataclass(frozen=True)
class BatchSize:
    """rows[l]: nodes that layer l reads, the batch's own last (depth + 1 numbers); edges[l]: those of its block."""

    rows: list[int]
    edges: list[int]

    @property
    def inputs(self) -> int:
        return self.rows[0]


def estimate_batch(
    graph: Graph,
    candidates: Array,
    batch_size: int,
    fanouts: Sequence[int | float],
    seed: int = 0,
    limit: int = EDGES_READ,
) -> BatchSize:
    """The batch of `batch_size` of the candidates with `fanouts[l]` neighbours for layer l, input side first (-1: all,
    in (0, 1): that share of them).

    Where a layer would read more than `limit` edges, some of its nodes are expanded. If s of n nodes reach a share c of
    the graph, n reach about 1 − (1−c)^(n/s) of it; nodes that many share make that too much rather than too little.
    """
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    num_nodes, size = graph.num_nodes, min(batch_size, len(candidates))
    rows = [size]
    edges: list[int] = []
    known = rng.choice(candidates, size, replace=False)
    for fanout in reversed(fanouts):
        taken = graph.indptr[known + 1].astype(np.int64) - graph.indptr[known]
        if isinstance(fanout, float):
            fanout = math.ceil(fanout * float(taken.mean()))
        fanout = -1 if fanout >= taken.max() else fanout
        taken = taken if fanout < 0 else np.minimum(taken, fanout)
        some = known[: max(1, int(np.searchsorted(np.cumsum(taken), limit, side="right")))]
        reached = np.union1d(some, _sampled_neighbours(graph, some, fanout, rng))
        share = len(reached) / num_nodes
        edges.insert(0, round(rows[0] * float(taken.mean())))
        spread = num_nodes * (1 - (1 - share) ** (rows[0] / len(some)))
        rows.insert(0, max(rows[0], min(round(spread), rows[0] + edges[0])))
        known = rng.permutation(reached)
    return BatchSize(rows, edges)


def _sampled_neighbours(graph: Graph, nodes: Array, fanout: int, rng: np.random.Generator) -> Array:
    starts = graph.indptr[nodes].astype(np.int64)
    degree = graph.indptr[nodes + 1] - starts
    if fanout < 0:
        return neighbours(graph, nodes)
    many = degree > fanout
    # Evenly spaced from a random start: distinct, and each neighbour as likely as the other.
    place = (rng.random((int(many.sum()), 1)) + np.arange(fanout)) * (degree[many] / fanout)[:, None]
    place = np.minimum(place.astype(np.int64), degree[many][:, None] - 1)  # the sum may round up to the end
    picked = graph.indices[starts[many][:, None] + place]
    return np.concatenate([picked.ravel(), neighbours(graph, nodes[~many])])
