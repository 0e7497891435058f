"""A generated community graph on which cut edges matter.

Features alone say little about a node's class (`signal` is small against the noise), neighbours say more
(`homophily` of the edges stay inside the class), so a model that loses its cut edges loses accuracy.
"""

import numpy as np

from llcg_dist.data.datasets.splits import check_fractions, split_by_fractions
from llcg_dist.data.graph import Array, Graph, undirected_csr
from llcg_dist.dataset_config import SyntheticConfig
from llcg_dist.errors import UserError


def generate(config: SyntheticConfig) -> Graph:
    """The graph of these settings: the same bits for the same settings."""
    _check(config)
    rng = np.random.default_rng(np.random.SeedSequence(config.seed))
    labels = rng.permutation(np.arange(config.nodes) % config.classes)
    src, dst = _edges(config, labels, rng)
    indptr, indices = undirected_csr(src, dst, config.nodes)
    means = rng.standard_normal((config.classes, config.features), dtype=np.float32) * np.float32(config.signal)
    features = rng.standard_normal((config.nodes, config.features), dtype=np.float32)
    features += means[labels]
    split = split_by_fractions(np.arange(config.nodes), config.nodes, config, rng)
    return Graph(indptr, indices, features, labels, split, config.classes)


def _edges(config: SyntheticConfig, labels: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """One end uniform; the other inside the same class with probability `homophily`, else in another class."""
    num_edges = round(config.nodes * config.degree / 2)
    src = rng.integers(config.nodes, size=num_edges)
    inside = rng.random(num_edges) < config.homophily
    other = (labels[src] + rng.integers(1, max(config.classes, 2), size=num_edges)) % config.classes
    wanted = np.where(inside, labels[src], other)
    by_class = np.argsort(labels, kind="stable")
    size = np.bincount(labels, minlength=config.classes)
    first = np.cumsum(size) - size
    dst = by_class[first[wanted] + (rng.random(num_edges) * size[wanted]).astype(np.int64)]
    return src, dst


def _check(config: SyntheticConfig) -> None:
    rules = {
        "nodes": (config.nodes >= 1, "must be at least 1"),
        "classes": (1 <= config.classes <= config.nodes, "must lie between 1 and dataset.nodes"),
        "degree": (0 <= config.degree < config.nodes, "must not be negative and must be below dataset.nodes"),
        "homophily": (0 <= config.homophily <= 1, "must lie in [0, 1]"),
        "features": (config.features >= 1, "must be at least 1"),
    }
    check_fractions(config)
    for key, (holds, rule) in rules.items():
        if not holds:
            raise UserError(f"dataset.{key}={getattr(config, key)}: {rule}")
