"""Estimates the size of a mini-batch without sampling it: reads a bounded number of edges and extrapolates."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from llcg_dist.data.graph import Graph, neighbours
from llcg_dist.data.rows import Array

MAX_EDGES_READ = 1_000_000
"""Edges to read per layer at most (or those of one node): below a second on any graph, memory-mapped files included."""


@dataclass(frozen=True)
class BatchSize:
    """rows[l]: source nodes of layer l, and last the seeds (depth + 1 numbers); edges[l]: edges of layer l's block."""

    rows: list[int]
    edges: list[int]

    @property
    def inputs(self) -> int:
        """Rows of features that the batch reads."""
        return self.rows[0]


def estimate_batch(
    graph: Graph,
    candidates: Array,
    batch_size: int,
    fanouts: Sequence[int | float],
    seed: int = 0,
    limit: int = MAX_EDGES_READ,
) -> BatchSize:
    """The size of a batch of `batch_size` seeds out of `candidates`, with `fanouts[l]` neighbours per node for layer l,
    input side first (-1: all of them; in (0, 1): that share of them).

    Where a layer would read more than `limit` edges, only s of its n nodes are expanded. If these reach a share c of
    the graph, all n reach about 1 − (1−c)^(n/s) of it; neighbours that many nodes share make this an overestimate.
    """
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    num_nodes, size = graph.num_nodes, min(batch_size, len(candidates))
    rows = [size]
    edges: list[int] = []
    nodes = rng.choice(candidates, size, replace=False)
    for fanout in reversed(fanouts):
        sampled = graph.indptr[nodes + 1].astype(np.int64) - graph.indptr[nodes]
        if isinstance(fanout, float):
            fanout = math.ceil(fanout * float(sampled.mean()))
        fanout = -1 if fanout >= sampled.max() else fanout
        sampled = sampled if fanout < 0 else np.minimum(sampled, fanout)
        expanded = nodes[: max(1, int(np.searchsorted(np.cumsum(sampled), limit, side="right")))]
        reached = np.union1d(expanded, _sampled_neighbours(graph, expanded, fanout, rng))
        share = len(reached) / num_nodes
        edges.insert(0, round(rows[0] * float(sampled.mean())))
        extrapolated = num_nodes * (1 - (1 - share) ** (rows[0] / len(expanded)))
        rows.insert(0, max(rows[0], min(round(extrapolated), rows[0] + edges[0])))
        nodes = rng.permutation(reached)
    return BatchSize(rows, edges)


def _sampled_neighbours(graph: Graph, nodes: Array, fanout: int, rng: np.random.Generator) -> Array:
    """Neighbour lists of the nodes, at most `fanout` of each (-1: all), concatenated in any order."""
    starts = graph.indptr[nodes].astype(np.int64)
    degree = graph.indptr[nodes + 1] - starts
    if fanout < 0:
        return neighbours(graph, nodes)
    many = degree > fanout
    # Systematic sampling, evenly spaced from a random start: distinct neighbours, each with the same probability.
    offset = (rng.random((int(many.sum()), 1)) + np.arange(fanout)) * (degree[many] / fanout)[:, None]
    offset = np.minimum(offset.astype(np.int64), degree[many][:, None] - 1)  # the sum may round up to the degree
    sampled = graph.indices[starts[many][:, None] + offset]
    return np.concatenate([sampled.ravel(), neighbours(graph, nodes[~many])])


def expected_batch(
    num_nodes: int, degree: float, train_share: float, batch_size: int, fanouts: Sequence[int | float]
) -> BatchSize:
    """The size of a batch in a graph of which only the sizes are known: every node has `degree` neighbours, at random.

    Of N nodes, e edges reach N·(1 − exp(−e/N)).
    """
    seeds = max(1, min(batch_size, round(train_share * num_nodes)))
    rows, edges = [seeds], list[int]()
    for fanout in reversed(fanouts):
        sampled = fanout * degree if isinstance(fanout, float) else degree if fanout < 0 else min(fanout, degree)
        edges.insert(0, round(rows[0] * sampled))
        reached = (num_nodes - rows[0]) * (1 - math.exp(-edges[0] / num_nodes))
        rows.insert(0, min(num_nodes, rows[0] + math.ceil(reached)))
    return BatchSize(rows, edges)
