"""A generated community graph on which cut edges matter.

Features alone say little about a node's class (`signal` is small against the noise), neighbours say more
(`homophily` of the edges stay inside the class), so a model that loses its cut edges loses accuracy.
"""

import numpy as np

from llcg_dist.config.datasets import SyntheticConfig
from llcg_dist.data.csr import index_dtype, undirected_csr
from llcg_dist.data.datasets.splits import check_fractions, split_by_fractions
from llcg_dist.data.graph import Graph
from llcg_dist.data.rows import Array, row_slices
from llcg_dist.errors import UserError


def generate(config: SyntheticConfig) -> Graph:
    """The graph of these settings: the same bits for the same settings."""
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
    """[classes, labels] of 0 and 1: half of the classes have each label, rounded up."""
    place = rng.random((config.classes, config.multilabel)).argsort(axis=0)
    return (place < (config.classes + 1) // 2).astype(np.float32)


def _edges(config: SyntheticConfig, classes: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """One end uniform; the other inside the same class with probability `homophily`, else in another class.

    Drawn a piece after the other, which gives the numbers that one draw of them all would give.
    """
    num_edges = round(config.nodes * config.degree / 2)
    src, dst = (np.empty(num_edges, index_dtype(config.nodes, 0)) for _ in range(2))
    inside, wanted = np.empty(num_edges, bool), np.empty(num_edges, index_dtype(config.classes, 0))
    by_class = np.argsort(classes, kind="stable")
    size = np.bincount(classes, minlength=config.classes)
    first = np.cumsum(size) - size
    for piece in row_slices(src):
        src[piece] = rng.integers(config.nodes, size=len(src[piece]))
    for piece in row_slices(src):
        inside[piece] = rng.random(len(src[piece])) < config.homophily
    for piece in row_slices(src):
        own = classes[src[piece]]
        other = (own + rng.integers(1, max(config.classes, 2), size=len(own))) % config.classes
        wanted[piece] = np.where(inside[piece], own, other)
    for piece in row_slices(src):
        of_class = wanted[piece]
        dst[piece] = by_class[first[of_class] + (rng.random(len(of_class)) * size[of_class]).astype(np.int64)]
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
