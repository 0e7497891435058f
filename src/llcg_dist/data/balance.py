"""Types of nodes that parts shall have equal shares of, and clusters spread over parts by them.

Only training labels are used: the labels of validation and test nodes have no influence on the parts.
"""

import numpy as np

from llcg_dist.config.partition import Balance
from llcg_dist.data.graph import TRAIN, Graph
from llcg_dist.data.rows import Array

_MOST_CLASSES = 14
"""METIS balances a few types well and many badly: the largest classes count alone, all others together."""


def node_types(graph: Graph, balances: set[str]) -> Array | None:
    """[N] int64: the type of every node, 0 for those that are not trained on; None where nodes are all alike."""
    training = graph.split == TRAIN
    if Balance.labels in balances:
        types = np.zeros(graph.num_nodes, np.int64)
        types[training] = 1 + _pooled(_class_of_each(graph.labels[training], graph.task))
        return types
    return training.astype(np.int64) if Balance.train in balances else None


def _class_of_each(labels: Array, task: str) -> Array:
    """[n] the class of every node; of several labels the rarest, and num_classes where there is none."""
    if task != "multilabel":
        return labels
    counts = np.append(labels.sum(axis=0), np.inf)
    positive = np.column_stack([labels > 0, np.ones(len(labels), bool)])
    rarest: Array = np.where(positive, counts, np.inf).argmin(axis=1)
    return np.where(labels.any(axis=1), rarest, labels.shape[1])


def _pooled(classes: Array) -> Array:
    """[n] 0 for all but the largest classes, 1, 2, ... for these."""
    found, inverse, counts = np.unique(classes, return_inverse=True, return_counts=True)
    largest = np.argsort(-counts, kind="stable")[:_MOST_CLASSES]
    number = np.zeros(len(found), np.int64)
    number[largest] = 1 + np.arange(len(largest))
    return number[inverse]


def spread_clusters(clusters: Array, num_parts: int, types: Array | None, rng: np.random.Generator) -> Array:
    """[N] int32: the part of every node, whole clusters at a time.

    Each cluster goes to the part that stays the most even by it, in nodes and in nodes of each type: the largest first,
    or in random order where there are no types.
    """
    num_clusters = int(clusters.max()) + 1
    kinds = np.zeros(len(clusters), np.int64) if types is None else types
    sizes = np.zeros((num_clusters, int(kinds.max()) + 1))
    np.add.at(sizes, (clusters, kinds), 1)
    sizes = np.column_stack([sizes.sum(axis=1), sizes[:, 1:]])  # all nodes, then those of each type that is trained on
    total = np.maximum(sizes.sum(axis=0), 1)
    weights = total / total[0] * (num_parts / total) ** 2
    order = rng.permutation(num_clusters)
    if types is not None:
        order = order[np.argsort(-sizes[order, 0], kind="stable")]
    loads, part_of_cluster = np.zeros((num_parts, sizes.shape[1])), np.empty(num_clusters, np.int32)
    for cluster in order:
        growth = ((2 * loads + sizes[cluster]) * sizes[cluster]) @ weights
        part_of_cluster[cluster] = part = int(growth.argmin())
        loads[part] += sizes[cluster]
    return part_of_cluster[clusters]
