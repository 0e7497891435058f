"""dataset.subset: a small graph out of any."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llcg_dist.config.compose import load_config
from llcg_dist.config.datasets import SyntheticConfig
from llcg_dist.data.csr import undirected_csr
from llcg_dist.data.datasets import load_dataset
from llcg_dist.data.datasets.synthetic import generate
from llcg_dist.data.graph import TRAIN, VAL, Graph
from llcg_dist.data.subset import sample_nodes
from llcg_dist.errors import UserError

GRAPH = generate(SyntheticConfig(nodes=1000, classes=4, degree=6, features=3))


def edges_by_name(graph: Graph) -> set[tuple[int, int]]:
    nodes = graph.names.get("node", np.arange(graph.num_nodes))
    row = np.repeat(np.arange(graph.num_nodes), np.diff(graph.indptr))
    return set(zip(nodes[row].tolist(), nodes[graph.indices].tolist(), strict=True))


@given(st.integers(1, 1000), st.integers(0, 5))
def test_all_edges_between_the_nodes_that_are_kept(size: int, seed: int) -> None:
    small = sample_nodes(GRAPH, size, seed).validate("test")
    nodes = small.names["node"]
    assert len(set(nodes.tolist())) == small.num_nodes == size
    assert (small.features == GRAPH.features[nodes]).all()
    assert (small.labels == GRAPH.labels[nodes]).all()
    assert (small.split == GRAPH.split[nodes]).all()
    kept = set(nodes.tolist())
    assert edges_by_name(small) == {(a, b) for a, b in edges_by_name(GRAPH) if a in kept and b in kept}


def test_the_same_seed_the_same_nodes() -> None:
    first, again, other = (sample_nodes(GRAPH, 100, seed).names["node"] for seed in (3, 3, 4))
    assert (first == again).all()
    assert (first != other).any()


def test_it_keeps_far_more_edges_than_a_uniform_sample_would() -> None:
    small = sample_nodes(GRAPH, 100, 0)
    uniform = GRAPH.num_edges * (100 / 1000) ** 2
    assert small.num_edges > 3 * uniform


def test_a_graph_in_pieces_is_sampled_too() -> None:
    """No edge at all: every node is a start of its own, the one training node the first."""
    indptr, indices = undirected_csr(np.empty(0, np.int64), np.empty(0, np.int64), 50)
    split = np.full(50, VAL, np.int8)
    split[17] = TRAIN
    alone = Graph(indptr, indices, np.ones((50, 1), np.float32), np.zeros(50, np.int64), split, 2)
    assert sample_nodes(alone, 1, 0).names["node"].tolist() == [17]
    assert 17 in sample_nodes(alone, 20, 0).names["node"]


def test_names_go_along() -> None:
    named = replace(GRAPH, names={"node": np.array([f"n{i}" for i in range(1000)]), "class": np.array(list("abcd"))})
    small, numbered = sample_nodes(named, 10, 0), sample_nodes(GRAPH, 10, 0)
    assert small.names["node"].tolist() == [f"n{i}" for i in numbered.names["node"]]
    assert small.names["class"].tolist() == list("abcd")


@pytest.mark.parametrize("size", [0, -3, 1001])
def test_sizes_that_cannot_be(size: int) -> None:
    with pytest.raises(UserError, match=f"^dataset.subset={size}: must lie between 1 and the graph's 1000 nodes"):
        sample_nodes(GRAPH, size, 0)


def test_the_setting_works_for_any_dataset() -> None:
    config = load_config(["dataset.nodes=500", "dataset.subset=40"])
    assert load_dataset(config.dataset).num_nodes == 40
