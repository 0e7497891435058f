"""Small graphs that tests know everything about."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from llcg_dist.config.datasets import SyntheticConfig
from llcg_dist.data.csr import undirected_csr
from llcg_dist.data.datasets.synthetic import generate
from llcg_dist.data.graph import TEST, TRAIN, VAL, Graph
from llcg_dist.data.rows import Array

Edge = tuple[int, int]


def graph_of(
    edges: Sequence[Edge], num_nodes: int, num_features: int = 3, num_classes: int = 2, **fields: Any
) -> Graph:
    """The undirected graph of these edges; features drawn, labels and split in turn unless given."""
    src, dst = np.array(edges, np.int64).reshape(-1, 2).T
    indptr, indices = undirected_csr(src, dst, num_nodes)
    rng = np.random.default_rng(0)
    content: dict[str, Any] = {
        "indptr": indptr,
        "indices": indices,
        "features": rng.standard_normal((num_nodes, num_features), dtype=np.float32),
        "labels": np.arange(num_nodes) % num_classes,
        "split": np.array([TRAIN, TRAIN, VAL, TEST] * num_nodes, np.int8)[:num_nodes],
        "num_classes": num_classes,
    }
    return Graph(**(content | fields))


def community_graph(nodes: int = 120, seed: int = 0) -> Graph:
    config = SyntheticConfig(nodes=nodes, classes=3, degree=6.0, features=5, signal=0.5, seed=seed)
    return generate(config).validate("test")


def rows_of(indptr: Array, indices: Array) -> list[list[int]]:
    """Neighbour lists."""
    return [indices[a:b].tolist() for a, b in zip(indptr[:-1], indptr[1:], strict=True)]


def dense(graph: Graph) -> Array:
    """[N, N] float64 of 0 and 1."""
    matrix = np.zeros((graph.num_nodes, graph.num_nodes))
    for node, row in enumerate(rows_of(graph.indptr, graph.indices)):
        matrix[node, row] = 1
    return matrix


def dense_gcn(graph: Graph, norm: str) -> Array:
    """D^-1/2 (A+I) D^-1/2 or D^-1 (A+I), D the degrees with the self-loop."""
    looped = dense(graph) + np.eye(graph.num_nodes)
    degree = looped.sum(axis=1)
    if norm == "row":
        return looped / degree[:, None]
    return looped / np.sqrt(np.outer(degree, degree))
