"""The graph type against naive references, and what it refuses."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llcg_dist.data.graph import TEST, TRAIN, UNUSED, VAL, Graph, induced_subgraph, reordered_topology
from llcg_dist.errors import UserError
from tests.helpers.edge_lists import edge_lists, neighbour_lists
from tests.helpers.graphs import Edge, graph_of, rows_of


@given(edge_lists(), st.data())
def test_induced_subgraph(drawn: tuple[int, list[Edge]], data: st.DataObject) -> None:
    n, edges = drawn
    nodes = sorted(data.draw(st.sets(st.integers(0, n - 1), min_size=1)))
    graph = graph_of(edges, n)
    part = induced_subgraph(graph, np.array(nodes))
    kept = [[nodes.index(j) for j in neighbour_lists(n, edges)[node] if j in nodes] for node in nodes]
    assert rows_of(part.indptr, part.indices) == kept
    for name in ("features", "labels", "split"):
        assert (getattr(part, name) == getattr(graph, name)[nodes]).all()
    for name in ("indptr", "indices", "features", "labels", "split"):
        assert getattr(part, name).dtype == getattr(graph, name).dtype
    assert (part.num_classes, part.task, part.metric) == (graph.num_classes, graph.task, graph.metric)


@given(edge_lists())
def test_all_nodes_induce_the_graph_itself(drawn: tuple[int, list[Edge]]) -> None:
    n, edges = drawn
    graph = graph_of(edges, n)
    part = induced_subgraph(graph, np.arange(n))
    for name in ("indptr", "indices", "features", "labels", "split"):
        assert getattr(part, name).tobytes() == getattr(graph, name).tobytes()


@given(edge_lists(), st.data())
def test_reordered_topology(drawn: tuple[int, list[Edge]], data: st.DataObject) -> None:
    n, edges = drawn
    order = data.draw(st.permutations(range(n)))
    indptr, indices = reordered_topology(graph_of(edges, n), np.array(order))
    expected = [sorted(order.index(j) for j in neighbour_lists(n, edges)[node]) for node in order]
    assert [sorted(row) for row in rows_of(indptr, indices)] == expected


def test_sizes_and_splits() -> None:
    graph = graph_of([(0, 1), (1, 2), (2, 0), (2, 3)], 5, num_features=7)
    assert (graph.num_nodes, graph.num_edges, graph.num_features) == (5, 4, 7)
    assert graph.nodes_in(TRAIN).tolist() == [0, 1, 4]
    assert graph.nodes_in(VAL).tolist() == [2]
    assert graph.nodes_in(TEST).tolist() == [3]


def test_label_counts() -> None:
    assert graph_of([], 5, num_classes=3).label_counts().tolist() == [2, 2, 1]
    labels = np.array([[1, 0], [1, 1], [1, 0]], np.float32)
    assert graph_of([], 3, labels=labels, task="multilabel").label_counts().tolist() == [3, 1]


@pytest.mark.parametrize("unknown", [-1, 7])
def test_nodes_whose_label_is_unknown_are_valid_and_not_counted(unknown: int) -> None:
    """Such nodes are in no split; a partition store counts the labels of every graph."""
    graph = graph_of([], 3, labels=np.array([0, 1, unknown]), split=np.array([TRAIN, VAL, UNUSED], np.int8))
    assert graph.validate("test").label_counts().tolist() == [1, 1]


FINE = graph_of([(0, 1), (1, 2), (2, 3)], 4)
MULTI = graph_of([], 2, labels=np.array([[0, 1], [1, 1]], np.float32), task="multilabel", metric="f1_micro")


def csr(rows: list[list[int]]) -> dict[str, Any]:
    return {
        "indptr": np.cumsum([0, *map(len, rows)]).astype(np.int32),
        "indices": np.array([j for row in rows for j in row], np.int32),
    }


def changed(array: Any, index: Any, value: Any) -> Any:
    copy = array.copy()
    copy[index] = value
    return copy


BAD: dict[str, tuple[Graph, dict[str, Any], str]] = {
    "nothing": (FINE, {"indptr": np.zeros(1, np.int32), "indices": np.zeros(0, np.int32)}, "no nodes"),
    "task": (FINE, {"task": "regression"}, "'regression'"),
    "metric": (FINE, {"metric": "bleu"}, "'bleu'"),
    "flat features": (FINE, {"features": np.zeros(4, np.float32)}, "features must have two axes"),
    "feature rows": (FINE, {"features": FINE.features[:3]}, "features has 3 rows for 4 nodes"),
    "label rows": (FINE, {"labels": FINE.labels[:2]}, "labels has 2 rows for 4 nodes"),
    "split rows": (FINE, {"split": FINE.split[:1]}, "split has 1 rows for 4 nodes"),
    "nan": (FINE, {"features": changed(FINE.features, (2, 1), np.nan)}, "features of node 2 are not finite"),
    "inf": (FINE, {"features": changed(FINE.features, (3, 0), -np.inf)}, "features of node 3 are not finite"),
    "short indptr": (FINE, {"indptr": changed(FINE.indptr, -1, 5)}, "indptr does not span"),
    "late indptr": (FINE, {"indptr": changed(FINE.indptr, 0, 1)}, "indptr does not span"),
    "falling indptr": (FINE, {"indptr": changed(FINE.indptr, 1, 5)}, "indptr is not ascending"),
    "edge beyond": (FINE, csr([[1], [0, 2], [1, 4], [2]]), r"outside the nodes 0\.\.3"),
    "edge below": (FINE, csr([[1], [0, 2], [-1, 1], [2]]), r"outside the nodes 0\.\.3"),
    "unsorted": (FINE, csr([[1], [2, 0], [1, 3], [2]]), "not sorted and unique"),
    "twice": (FINE, csr([[1, 1], [0, 0], [], []]), "not sorted and unique"),
    "self-loop": (FINE, csr([[0, 1], [0], [], []]), "self-loop"),
    "one direction": (FINE, csr([[1], [], [], []]), "one direction only"),
    "two axes of classes": (FINE, {"labels": np.zeros((4, 1), np.int64)}, "multiclass labels must have one axis"),
    "class too high": (FINE, {"labels": changed(FINE.labels, 1, 2)}, r"label of node .?1.? is outside 0\.\.1"),
    "class negative": (FINE, {"labels": changed(FINE.labels, 3, -1)}, r"label of node .?3.? is outside 0\.\.1"),
    "split value": (FINE, {"split": changed(FINE.split, 0, 4)}, r"split holds a value outside 0\.\.3"),
    "no training node": (FINE, {"split": np.full(4, VAL, np.int8)}, "no training node"),
    "multi-label shape": (MULTI, {"num_classes": 3}, r"labels must have shape \[2, 3\]"),
    "multi-label value": (MULTI, {"labels": changed(MULTI.labels, (0, 0), 0.5)}, "must be 0 or 1"),
    "multi-label nan": (MULTI, {"labels": changed(MULTI.labels, (0, 0), np.nan)}, "must be 0 or 1"),
    # This one would only fail in the first evaluation, on another rank and in another line's words.
    "accuracy of several labels": (MULTI, {"metric": "accuracy"}, "accuracy"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_content_is_refused_by_name(kind: str) -> None:
    graph, fields, reason = BAD[kind]
    with pytest.raises(UserError, match=reason) as refused:
        replace(graph, **fields).validate("dataset=mine")
    assert str(refused.value).startswith("dataset=mine: ")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "graph",
    [
        FINE,
        MULTI,
        graph_of([], 1),
        replace(FINE, metric="roc_auc"),
        replace(FINE, metric="roc_auc", num_classes=3),
        replace(MULTI, metric="roc_auc"),
    ],
)
def test_good_content_is_returned_as_it_is(graph: Graph) -> None:
    assert graph.validate("test") is graph
