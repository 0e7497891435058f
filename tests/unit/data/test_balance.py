"""Parts with equal shares of every class of training labels, whoever's METIS cuts them."""

from dataclasses import replace

import numpy as np
import pytest

from llcg_dist.config.datasets import SyntheticConfig
from llcg_dist.config.partition import Balance, PartitionBackend, PartitionConfig, PartitionMethod
from llcg_dist.data.balance import node_types, spread_clusters
from llcg_dist.data.cut import label_skew
from llcg_dist.data.datasets import load_dataset
from llcg_dist.data.graph import TRAIN, Graph
from llcg_dist.data.parts import assign_parts
from llcg_dist.data.rows import Array
from tests.helpers.graphs import graph_of
from tests.helpers.partitions import BACKENDS

GRAPH = load_dataset(SyntheticConfig(nodes=2000, classes=8, degree=10.0, homophily=0.8, features=4))
PARTS = 4


def cut(method: str, balance: Balance, backend: str = "pymetis", graph: Graph = GRAPH) -> Array:
    config = PartitionConfig(PartitionMethod(method), backend=PartitionBackend(backend), balance=balance, clusters=8)
    return assign_parts(graph, PARTS, config)


def training_skew(parts: Array) -> float:
    """The worst part's, over training labels alone."""
    training = GRAPH.split == TRAIN
    everyone = np.bincount(GRAPH.labels[training], minlength=GRAPH.num_classes).tolist()
    counts = (np.bincount(GRAPH.labels[training & (parts == p)], minlength=GRAPH.num_classes) for p in range(PARTS))
    return max(label_skew(count.tolist(), everyone) for count in counts)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("method", ["metis", "clusters"])
def test_skew_falls_and_parts_stay_balanced(method: str, backend: str) -> None:
    plain, balanced = cut("metis", Balance.none, backend), cut(method, Balance.labels, backend)
    assert training_skew(plain) > 0.3
    assert training_skew(balanced) < 0.5 * training_skew(plain)
    assert np.bincount(balanced, minlength=PARTS).max() < 1.15 * GRAPH.num_nodes / PARTS


@pytest.mark.parametrize("method", ["metis", "clusters"])
@pytest.mark.parametrize("balance", [Balance.train, Balance.labels])
def test_labels_of_validation_and_test_nodes_have_no_influence(method: str, balance: Balance) -> None:
    others = GRAPH.split != TRAIN
    labels = GRAPH.labels.copy()
    labels[others] = np.random.default_rng(0).permutation(labels[others])
    assert not np.array_equal(labels, GRAPH.labels)
    assert np.array_equal(cut(method, balance), cut(method, balance, graph=replace(GRAPH, labels=labels)))


def test_training_nodes_alone() -> None:
    """Training nodes at one end of a chain: METIS would give them to few parts."""
    chain = graph_of([(i, i + 1) for i in range(399)], 400)
    chain = replace(chain, split=np.where(np.arange(400) < 100, TRAIN, 0).astype(np.int8))
    shares = [np.bincount(cut("metis", each, graph=chain)[:100], minlength=4) for each in (Balance.none, Balance.train)]
    assert shares[0].max() > 90
    assert shares[1].max() < 40


def test_types_by_hand() -> None:
    split = np.array([TRAIN, TRAIN, TRAIN, 0, 0, TRAIN], np.int8)
    graph = replace(graph_of([(0, 1)], 6), labels=np.array([2, 2, 5, 0, 2, 7]), split=split)
    assert node_types(graph, {"labels"}).tolist() == [2, 2, 3, 0, 0, 4]  # type: ignore[union-attr]
    assert node_types(graph, {"train"}).tolist() == [1, 1, 1, 0, 0, 1]  # type: ignore[union-attr]
    assert node_types(graph, {"none"}) is None


def test_of_several_labels_the_rarest_counts() -> None:
    labels = np.array([[1, 1, 0], [1, 0, 0], [0, 0, 0], [1, 0, 1]], np.float32)
    graph = replace(graph_of([(0, 1)], 4), labels=labels, task="multilabel", split=np.full(4, TRAIN, np.int8))
    types = node_types(graph, {"labels"})
    assert types is not None
    assert len(set(types.tolist())) == 4  # label 1, label 0, none, label 2


def test_many_classes_are_pooled_but_for_the_largest() -> None:
    labels = np.concatenate([np.repeat(np.arange(20), 5), np.arange(20, 60)])
    graph = replace(graph_of([(0, 1)], len(labels)), labels=labels, split=np.full(len(labels), TRAIN, np.int8))
    types = node_types(graph, {"labels"})
    assert types is not None
    assert len(set(types.tolist())) == 15
    assert len(set(types[100:].tolist())) == 1


def test_whole_clusters_are_spread_evenly() -> None:
    clusters = np.repeat(np.arange(8), 10)
    types = np.repeat([1, 1, 1, 1, 2, 2, 2, 2], 10)
    parts = spread_clusters(clusters, 4, types, np.random.default_rng(0))
    assert all(len(set(parts[clusters == c])) == 1 for c in range(8))
    assert [sorted(types[parts == p].tolist()) for p in range(4)] == [[1] * 10 + [2] * 10] * 4
