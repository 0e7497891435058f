"""Graph libraries' objects become the same Graph as any other loader's."""

import logging
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data
from torch_geometric.transforms import ToSparseTensor

from llcg_dist.config.dataset import Metric
from llcg_dist.config.own_data import MemoryConfig
from llcg_dist.data.datasets.memory import graph_digest
from llcg_dist.data.datasets.objects import to_graph, to_unlabelled_graph
from llcg_dist.data.graph import TEST, TRAIN, UNUSED, VAL, Graph
from llcg_dist.errors import UserError
from tests.helpers.graphs import community_graph, rows_of
from tests.helpers.own_data import LikeDgl, OneGraph, data_of, edge_index_of, tensors_of

GRAPH = community_graph(60)
N = GRAPH.num_nodes


def converted(data: Any, **settings: Any) -> Graph:
    return to_graph(data, MemoryConfig(**settings))


def same(graph: Graph, other: Graph) -> bool:
    return graph_digest(graph) == graph_digest(other)


class LikeOgb(list[Data]):
    """OGB keeps the split beside the graph, and calls val `valid`."""

    def get_idx_split(self) -> dict[str, torch.Tensor]:
        splits = {"train": TRAIN, "valid": VAL, "test": TEST}
        return {name: torch.from_numpy(GRAPH.nodes_in(value)) for name, value in splits.items()}


class LikeDglDataset:
    def process(self) -> None: ...

    def __getitem__(self, index: int) -> LikeDgl:
        return [LikeDgl(GRAPH, {"x": "feat", "y": "label"})][index]

    def __len__(self) -> int:
        return 1


NO_MASKS = {"train_mask": None, "val_mask": None, "test_mask": None}
SAME = {
    "data": data_of(GRAPH),
    "dictionary": tensors_of(GRAPH),
    "arrays": {name: value.numpy() for name, value in tensors_of(GRAPH).items()},
    "dataset": OneGraph(data_of(GRAPH)),
    "list": [data_of(GRAPH)],
    "ogb": LikeOgb([data_of(GRAPH, **NO_MASKS)]),
    "dgl": LikeDgl(GRAPH, {"x": "feat", "y": "label"}),
    "dgl, other names": LikeDgl(GRAPH, {"x": "features", "y": "labels", "val_mask": "valid_mask"}),
    "dgl, a dataset": LikeDglDataset(),
    "graph": GRAPH,
    "one direction": data_of(GRAPH, edge_index=edge_index_of(GRAPH)[:, (edge_index_of(GRAPH).diff(dim=0) > 0)[0]]),
    "twice, with loops": data_of(
        GRAPH, edge_index=torch.cat([edge_index_of(GRAPH).repeat(1, 2), torch.ones(2, 1, dtype=torch.int64)], 1)
    ),
    "sparse x": data_of(GRAPH, x=torch.from_numpy(GRAPH.features).to_sparse()),
    "csr x": data_of(GRAPH, x=torch.from_numpy(GRAPH.features).to_sparse_csr()),
    "x in double": data_of(GRAPH, x=torch.from_numpy(GRAPH.features).double()),
    "x that learns": data_of(GRAPH, x=torch.from_numpy(GRAPH.features).clone().requires_grad_()),
    "y in a column": data_of(GRAPH, y=torch.from_numpy(GRAPH.labels)[:, None]),
    "y in floats": data_of(GRAPH, y=torch.from_numpy(GRAPH.labels).float()),
    "masks in numbers": data_of(GRAPH, train_mask=torch.from_numpy(GRAPH.split == TRAIN).long()),
    "adj_t": ToSparseTensor()(data_of(GRAPH)),
    "weights of one": data_of(GRAPH, edge_weight=torch.ones(len(GRAPH.indices))),
}


@pytest.mark.parametrize("data", SAME.values(), ids=SAME.keys())
def test_every_form_is_the_same_graph(data: Any) -> None:
    assert same(converted(data), GRAPH)


def test_the_digest_sees_every_array() -> None:
    for name in ("features", "labels", "split"):
        changed = getattr(GRAPH, name).copy()
        changed[-1] = changed[-1] + 1
        assert not same(replace(GRAPH, **{name: changed}), GRAPH)
    assert not same(replace(GRAPH, metric="f1_micro"), GRAPH)
    assert not same(replace(GRAPH, names={"node": np.arange(N)}), GRAPH)


@given(st.integers(1, 12), st.data())
def test_any_edges_become_undirected_once_each(nodes: int, draw: st.DataObject) -> None:
    node = st.integers(0, nodes - 1)
    edges = draw.draw(st.lists(st.tuples(node, node), max_size=30))
    index = torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).T
    graph = to_unlabelled_graph(Data(x=torch.zeros(nodes, 1), edge_index=index), "data")
    neighbours: list[set[int]] = [set() for _ in range(nodes)]
    for a, b in edges:
        if a != b:
            neighbours[a].add(b)
            neighbours[b].add(a)
    assert rows_of(graph.indptr, graph.indices) == [sorted(row) for row in neighbours]
    assert (graph.labels == -1).all()
    assert (graph.split == UNUSED).all()


@given(st.lists(st.sampled_from([0, 1, 2, -1, -100, float("nan")]), min_size=4, max_size=40), st.integers(0, 3))
def test_unknown_labels_are_in_no_split(labels: list[float], seed: int) -> None:
    labels = [0, 1, *labels]
    graph = converted(data_of_labels(torch.tensor(labels)), seed=seed, train_fraction=0.5, val_fraction=0.25)
    known = np.array([label >= 0 for label in labels])
    assert ((graph.split != UNUSED) == known).all()
    assert (graph.labels == [int(label) if label >= 0 else -1 for label in labels]).all()
    assert len(graph.nodes_in(TRAIN)) == round(0.5 * known.sum())
    assert graph.num_classes == int(max(label for label in labels if label >= 0)) + 1


def data_of_labels(y: torch.Tensor, **fields: Any) -> Data:
    chain = torch.stack([torch.arange(len(y) - 1), torch.arange(1, len(y))])
    return Data(x=torch.ones(len(y), 2), edge_index=chain, y=y, **fields)


def test_the_split_is_drawn_with_the_datasets_seed() -> None:
    drawn = [converted(data_of(GRAPH, **NO_MASKS), seed=seed).split for seed in (0, 0, 1)]
    assert (drawn[0] == drawn[1]).all()
    assert (drawn[0] != drawn[2]).any()


def test_several_splits() -> None:
    """As in WikiCS: several columns to train and validate on, and one to test on."""
    train, val = np.zeros((2, N, 3), bool)
    test = np.zeros(N, bool)
    for column in range(3):
        train[column * 10 : column * 10 + 10, column] = val[30 + column, column] = True
    test[50:] = True
    masks = {"train_mask": train, "val_mask": val, "test_mask": test}
    data = data_of(GRAPH, **{name: torch.from_numpy(mask) for name, mask in masks.items()})
    graph = converted(data, split=1)
    assert graph.nodes_in(TRAIN).tolist() == list(range(10, 20))
    assert graph.nodes_in(VAL).tolist() == [31]
    assert graph.nodes_in(TEST).tolist() == list(range(50, N))
    with pytest.raises(UserError, match=r"^dataset\.split=3: train_mask has 3 splits, 0 to 2$"):
        converted(data, split=3)


@pytest.mark.parametrize("dtype", [torch.int64, torch.float32, torch.bool])
def test_several_labels(dtype: torch.dtype) -> None:
    y = torch.tensor([[1, 0, 1], [0, 0, 0], [1, 1, 1], [0, 1, 0]])
    graph = converted(data_of_labels(y.to(dtype)))
    assert (graph.task, graph.metric, graph.num_classes) == ("multilabel", "f1_micro", 3)
    assert graph.labels.dtype == np.float32
    assert (graph.labels == y.numpy()).all()
    assert converted(data_of_labels(y.to(dtype)), metric=Metric.roc_auc).metric == "roc_auc"


def test_several_labels_of_which_some_are_unknown() -> None:
    y = torch.tensor([[1.0, 0.0], [torch.nan, torch.nan], [0.0, 1.0], [-1.0, -1.0]])
    graph = converted(data_of_labels(y), train_fraction=0.5, val_fraction=0.5)
    assert (graph.split[[1, 3]] == UNUSED).all()
    assert (graph.split[[0, 2]] != UNUSED).all()


def test_half_precision_stays() -> None:
    assert converted(data_of(GRAPH, x=torch.from_numpy(GRAPH.features).half())).features.dtype == np.float16
    assert converted(data_of(GRAPH, x=torch.from_numpy(GRAPH.features).bfloat16())).features.dtype == np.float32


def test_the_settings_metric_goes_for_a_graph_too() -> None:
    assert converted(GRAPH, metric=Metric.f1_micro).metric == "f1_micro"


def test_values_of_edges_that_are_not_used_are_said(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        converted(data_of(GRAPH, edge_attr=torch.rand(len(GRAPH.indices), 3)))
        converted(LikeDgl(GRAPH, {}, {"bond": torch.zeros(len(GRAPH.indices))}))
    said = [record.getMessage() for record in caplog.records]
    assert said == [
        "data: edge_attr is not used: edges have no values here, all count alike",
        "data: bond is not used: edges have no values here, all count alike",
    ]


def test_dgls_own_graph() -> None:
    dgl = pytest.importorskip("dgl")
    src, dst = edge_index_of(GRAPH)
    graph = dgl.graph((src, dst), num_nodes=N)
    names = {"x": "feat", "y": "label"}
    graph.ndata.update({names.get(name, name): v for name, v in tensors_of(GRAPH).items() if name != "edge_index"})
    assert same(converted(graph), GRAPH)
    hetero = dgl.heterograph({("a", "to", "b"): ([0], [0]), ("b", "of", "a"): ([0], [0])})
    with pytest.raises(UserError, match="^data: a heterogeneous graph"):
        converted(hetero)
