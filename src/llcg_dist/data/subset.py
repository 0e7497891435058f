"""dataset.subset: a small sample of a large graph."""

import dataclasses

import numpy as np

from llcg_dist.data.graph import TRAIN, Graph, induced_subgraph, neighbours
from llcg_dist.errors import UserError


def sample_nodes(graph: Graph, size: int, seed: int) -> Graph:
    """The subgraph induced by `size` nodes; deterministic for a seed.

    Nodes are reached breadth-first from random training nodes. A uniform sample of a sparse graph would keep next to no
    edge, and might keep no training node.
    """
    if not 1 <= size <= graph.num_nodes:
        raise UserError(f"dataset.subset={size}: must lie between 1 and the graph's {graph.num_nodes} nodes")
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    training = graph.split == TRAIN
    starts = np.concatenate([rng.permutation(np.flatnonzero(mask)) for mask in (training, ~training)])
    starts_per_search = max(1, size // 100)
    chosen = np.zeros(graph.num_nodes, bool)
    missing, frontier = size, starts[:0]
    while missing:
        if len(frontier) == 0:
            frontier, starts = starts[:starts_per_search], starts[starts_per_search:]
        fresh = np.unique(frontier)
        fresh = rng.permutation(fresh[~chosen[fresh]])[:missing]
        chosen[fresh] = True
        missing -= len(fresh)
        frontier = neighbours(graph, fresh)
    nodes = np.flatnonzero(chosen)
    names = dict(graph.names) | {"node": graph.names["node"][nodes] if "node" in graph.names else nodes}
    return dataclasses.replace(induced_subgraph(graph, nodes, lazy=True), names=names)
