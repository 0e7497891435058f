"""The generated graph has what was asked for."""

import hashlib
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llcg_dist.config.datasets import SyntheticConfig
from llcg_dist.data.datasets import load_dataset
from llcg_dist.data.datasets.synthetic import generate
from llcg_dist.data.graph import TEST, TRAIN, VAL, Graph
from llcg_dist.errors import UserError

CONFIG = SyntheticConfig(nodes=2000, classes=4, degree=20.0, features=8, signal=0.5)


def share_inside(graph: Graph) -> float:
    row = np.repeat(np.arange(graph.num_nodes), np.diff(graph.indptr))
    return float((graph.labels[row] == graph.labels[graph.indices]).mean())


def content(graph: Graph) -> list[bytes]:
    return [getattr(graph, name).tobytes() for name in ("indptr", "indices", "features", "labels", "split")]


def test_the_same_settings_give_the_same_bits() -> None:
    first = content(load_dataset(CONFIG))
    np.random.seed(1)
    assert content(load_dataset(CONFIG)) == first
    assert content(load_dataset(replace(CONFIG, seed=1))) != first


@pytest.mark.parametrize("homophily", [0.0, 0.3, 0.7, 1.0])
def test_homophily(homophily: float) -> None:
    graph = generate(replace(CONFIG, homophily=homophily))
    # 20,000 edges: the standard error of the share is below 0.0036.
    assert share_inside(graph) == pytest.approx(homophily, abs=0.015)
    if homophily in (0, 1):
        assert share_inside(graph) == homophily


@pytest.mark.parametrize("degree", [0.0, 4.0, 20.0])
def test_degree(degree: float) -> None:
    """Edges drawn twice and self-loops are lost: two or three in a hundred at degree 20."""
    graph = generate(replace(CONFIG, degree=degree))
    mean = 2 * graph.num_edges / graph.num_nodes
    assert 0.96 * degree <= mean <= degree


def test_splits_and_classes_have_their_sizes() -> None:
    graph = generate(replace(CONFIG, train_fraction=0.6, val_fraction=0.15))
    assert [len(graph.nodes_in(split)) for split in (TRAIN, VAL, TEST)] == [1200, 300, 500]
    assert graph.label_counts().tolist() == [500] * 4
    assert (graph.num_features, graph.num_classes, graph.task, graph.metric) == (8, 4, "multiclass", "accuracy")


def test_signal_is_the_spread_of_the_class_means() -> None:
    graph = generate(replace(CONFIG, nodes=8000, classes=80, features=50, signal=2.0))
    means = np.stack([graph.features[graph.labels == c].mean(axis=0) for c in range(80)])
    assert means.std() == pytest.approx(2.0, rel=0.05)
    assert (graph.features - means[graph.labels]).std() == pytest.approx(1.0, rel=0.05)


def test_several_labels_a_node() -> None:
    """Each stands for half of the classes; all else is as without them."""
    plain, graph = generate(CONFIG), load_dataset(replace(CONFIG, multilabel=6))
    assert (graph.num_classes, graph.task, graph.metric) == (6, "multilabel", "f1_micro")
    assert graph.labels.shape == (2000, 6)
    assert graph.label_counts().tolist() == [1000] * 6
    for c in range(4):
        assert len(np.unique(graph.labels[plain.labels == c], axis=0)) == 1
    assert content(plain)[:3] + content(plain)[4:] == content(graph)[:3] + content(graph)[4:]
    assert generate(replace(CONFIG, classes=5, multilabel=2)).label_counts().tolist() == [1200] * 2


def test_a_share_of_the_labels_is_wrong() -> None:
    """All else is as without them."""
    plain, graph = generate(CONFIG), load_dataset(replace(CONFIG, label_noise=0.3))
    # 2,000 nodes: the standard error of the share is 0.0102.
    assert float((plain.labels != graph.labels).mean()) == pytest.approx(0.3, abs=0.04)
    assert set(graph.labels.tolist()) == set(range(4))
    assert content(plain)[:3] + content(plain)[4:] == content(graph)[:3] + content(graph)[4:]


@settings(max_examples=40)
@given(
    st.integers(1, 60), st.integers(1, 6), st.floats(0, 8), st.floats(0, 1), st.integers(1, 4), st.integers(0, 10**9)
)
def test_every_allowed_setting_gives_a_valid_graph(
    nodes: int, classes: int, degree: float, homophily: float, features: int, seed: int
) -> None:
    config = SyntheticConfig(
        nodes=nodes,
        classes=min(classes, nodes),
        degree=min(degree, nodes - 1),
        homophily=homophily,
        features=features,
        seed=seed,
        train_fraction=1.0,
        val_fraction=0.0,
    )
    graph = load_dataset(config)
    assert (graph.num_nodes, graph.num_features, graph.num_classes) == (nodes, features, min(classes, nodes))
    assert set(graph.labels.tolist()) == set(range(min(classes, nodes)))
    assert len(graph.nodes_in(TRAIN)) == nodes


def test_splits_that_fill_the_graph_are_allowed() -> None:
    """0.9 and 0.1, 0.8 and 0.2, …: no rounding error of 1 − 0.9 may refuse them."""
    refused = []
    for percent in range(1, 100):
        train, val = percent / 100, (100 - percent) / 100
        config = SyntheticConfig(nodes=100, classes=2, degree=2, features=1, train_fraction=train, val_fraction=val)
        try:
            graph = load_dataset(config)
        except UserError:
            refused.append((train, val))
            continue
        assert [len(graph.nodes_in(split)) for split in (TRAIN, VAL, TEST)] == [percent, 100 - percent, 0]
    assert refused == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("nodes", 0),
        ("nodes", -5),
        ("multilabel", -1),
        ("classes", 0),
        ("classes", 2001),
        ("degree", -1.0),
        ("degree", 2000.0),
        ("degree", float("nan")),
        ("homophily", -0.1),
        ("homophily", 1.1),
        ("features", 0),
        ("label_noise", -0.1),
        ("label_noise", 1.0),
        ("train_fraction", 0.0),
        ("train_fraction", 1.5),
        ("val_fraction", -0.1),
        ("val_fraction", 0.6),
    ],
)
def test_bad_settings_are_refused_by_name(key: str, value: Any) -> None:
    with pytest.raises(UserError, match=rf"^dataset\.{key}=") as refused:
        load_dataset(replace(CONFIG, **{key: value}))
    assert "\n" not in str(refused.value)


def test_settings_whose_graph_cannot_train_are_refused() -> None:
    with pytest.raises(UserError, match="^dataset=synthetic: there is no training node"):
        load_dataset(replace(CONFIG, train_fraction=1e-6))
    with pytest.raises(UserError, match="^dataset.signal=inf: must be a number"):
        load_dataset(replace(CONFIG, signal=float("inf")))


NODES, EDGES = 50_000, 1_000_000
LARGE = SyntheticConfig(nodes=NODES, degree=2 * EDGES / NODES, classes=47, features=16)


def peak_bytes(make: Callable[[], object]) -> int:
    """The most that NumPy held at a time."""
    tracemalloc.start()
    try:
        make()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_graph_is_generated_in_the_memory_that_is_given() -> None:
    """Edges (16 bytes each) and features (64 bytes a node) are larger; besides, a few numbers for every node."""
    assert peak_bytes(lambda: generate(replace(LARGE, memory=0.002))) <= 2_000_000 + NODES * 6 * 8


def test_the_size_of_the_pieces_does_not_show_in_the_graph() -> None:
    config = SyntheticConfig(nodes=2000, degree=12.0)
    at_once, in_pieces = generate(config), generate(replace(config, memory=5e-5))
    for name in ("indptr", "indices", "features", "labels", "split"):
        assert np.array_equal(getattr(at_once, name), getattr(in_pieces, name)), name


def test_the_bits_of_a_graph_that_was_generated_long_ago() -> None:
    graph = generate(SyntheticConfig(nodes=500, degree=9.0, seed=3))
    digest = hashlib.sha256(b"".join(content(graph))).hexdigest()
    assert digest == "43e44532c1fb18a5984dbfea747ddf650f44b470d97d9ed4962c67e9cc07a2f6"


def test_one_class_has_no_wrong_label() -> None:
    with pytest.raises(UserError, match="^dataset.label_noise=0.1: must lie in"):
        generate(replace(CONFIG, classes=1, label_noise=0.1))
