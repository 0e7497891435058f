"""A generated graph with communities (a stochastic block model), on which dropping cut edges costs accuracy.

A node's own features say little about its class (`signal` is small against the noise); its neighbours say more (a share
`homophily` of the edges stays inside the class).
"""

import numpy as np

from llcg_dist.config.datasets import SyntheticConfig
from llcg_dist.data.csr import index_dtype, undirected_csr
from llcg_dist.data.datasets.splits import check_fractions, split_by_fractions
from llcg_dist.data.graph import Graph
from llcg_dist.data.rows import Array, row_slices
from llcg_dist.errors import UserError


def generate(config: SyntheticConfig) -> Graph:
    """Generates the graph; deterministic for the settings, bit by bit."""
    _check(config)
    rng = np.random.default_rng(np.random.SeedSequence(config.seed))
    classes = rng.permutation(np.arange(config.nodes) % config.classes)
    src, dst = _edges(config, classes, rng)
    indptr, indices = undirected_csr(src, dst, config.nodes)
    del src, dst
    means = rng.standard_normal((config.classes, config.features), dtype=np.float32) * np.float32(config.signal)
    features = rng.standard_normal((config.nodes, config.features), dtype=np.float32)
    for rows in row_slices(features):
        features[rows] += means[classes[rows]]
    split = split_by_fractions(np.arange(config.nodes), config.nodes, config, rng)
    if not config.multilabel:
        return Graph(indptr, indices, features, classes, split, config.classes)
    labels = _labels_of_classes(config, rng)[classes]
    return Graph(indptr, indices, features, labels, split, config.multilabel, "multilabel", "f1_micro")


def _labels_of_classes(config: SyntheticConfig, rng: np.random.Generator) -> Array:
    """[classes, labels] of 0 and 1: each label belongs to a random half of the classes, rounded up."""
    rank = rng.random((config.classes, config.multilabel)).argsort(axis=0)
    return (rank < (config.classes + 1) // 2).astype(np.float32)


def _edges(config: SyntheticConfig, classes: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """(src, dst): src uniform; dst in the class of src with probability `homophily`, else in another class.

    Drawn in chunks, which gives the same numbers as one draw would.
    """
    num_edges = round(config.nodes * config.degree / 2)
    src, dst = (np.empty(num_edges, index_dtype(config.nodes, 0)) for _ in range(2))
    same_class, dst_class = np.empty(num_edges, bool), np.empty(num_edges, index_dtype(config.classes, 0))
    by_class = np.argsort(classes, kind="stable")
    size = np.bincount(classes, minlength=config.classes)
    first = np.cumsum(size) - size
    for chunk in row_slices(src):
        src[chunk] = rng.integers(config.nodes, size=len(src[chunk]))
    for chunk in row_slices(src):
        same_class[chunk] = rng.random(len(src[chunk])) < config.homophily
    for chunk in row_slices(src):
        own = classes[src[chunk]]
        other = (own + rng.integers(1, max(config.classes, 2), size=len(own))) % config.classes
        dst_class[chunk] = np.where(same_class[chunk], own, other)
    for chunk in row_slices(src):
        of_class = dst_class[chunk]
        dst[chunk] = by_class[first[of_class] + (rng.random(len(of_class)) * size[of_class]).astype(np.int64)]
    return src, dst


def _check(config: SyntheticConfig) -> None:
    rules = {
        "nodes": (config.nodes >= 1, "must be at least 1"),
        "classes": (1 <= config.classes <= config.nodes, "must lie between 1 and dataset.nodes"),
        "degree": (0 <= config.degree < config.nodes, "must not be negative and must be below dataset.nodes"),
        "homophily": (0 <= config.homophily <= 1, "must lie in [0, 1]"),
        "features": (config.features >= 1, "must be at least 1"),
        "multilabel": (config.multilabel >= 0, "must not be negative"),
    }
    check_fractions(config)
    for key, (holds, rule) in rules.items():
        if not holds:
            raise UserError(f"dataset.{key}={getattr(config, key)}: {rule}")
