"""Small graphs that tests know everything about."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from llcg_dist.config.datasets import SyntheticConfig
from llcg_dist.data.csr import undirected_csr
from llcg_dist.data.datasets.synthetic import generate
from llcg_dist.data.graph import TEST, TRAIN, UNUSED, VAL, Graph
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


def random_graph(
    num_nodes: int,
    num_edges: int,
    seed: int,
    num_features: int = 6,
    num_classes: int = 4,
    labelled: float = 1.0,
) -> Graph:
    """Edges drawn at random, more of them at nodes with low numbers; a share of the nodes is in no split."""
    rng = np.random.default_rng(seed)
    src, dst = rng.integers(num_nodes, size=num_edges), (rng.random(num_edges) ** 2 * num_nodes).astype(np.int64)
    indptr, indices = undirected_csr(src, dst, num_nodes)
    split = np.where(rng.random(num_nodes) < labelled, rng.choice([TRAIN, VAL, TEST], num_nodes), UNUSED)
    split[0] = TRAIN
    features = rng.standard_normal((num_nodes, num_features), dtype=np.float32) + 3
    labels = rng.integers(num_classes, size=num_nodes)
    return Graph(indptr, indices, features, labels, split.astype(np.int8), num_classes).validate("test")


def hub_graph() -> Graph:
    """60 nodes at random, a few of them with many neighbours, the last four with none."""
    n, rng = 60, np.random.default_rng(3)
    src, dst = rng.integers(n - 4, size=150), (rng.random(150) ** 3 * (n - 4)).astype(np.int64)
    indptr, indices = undirected_csr(src, dst, n)
    features = rng.standard_normal((n, 7), dtype=np.float32) * 2 + 1
    return Graph(indptr, indices, features, rng.integers(5, size=n), np.full(n, TRAIN, np.int8), 5).validate("test")
