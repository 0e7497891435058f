"""Graph libraries' objects that cannot be trained on are refused in one line."""

from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import HeteroData
from torch_geometric.transforms import ToSparseTensor

from llcg_dist.config.own_data import MemoryConfig
from llcg_dist.data.datasets.objects import to_graph
from llcg_dist.errors import UserError
from tests.helpers.graphs import community_graph, graph_of
from tests.helpers.own_data import LikeDgl, OneGraph, data_of, edge_index_of

GRAPH = community_graph(60)
N = GRAPH.num_nodes


class OfSeveralKinds(LikeDgl):
    is_homogeneous = False


REFUSED = {
    "no x": (data_of(GRAPH, x=None), "data: has no x, the features of the nodes; add some, e.g. with torch_geometric."),
    "no y": (data_of(GRAPH, y=None), "data: has no y; it must hold a class per node"),
    "no edges": (data_of(GRAPH, edge_index=None), "data: has no edge_index"),
    "edges turned": (data_of(GRAPH, edge_index=edge_index_of(GRAPH).T), "data: edge_index must hold whole numbers"),
    "edge outside": (
        data_of(GRAPH, edge_index=torch.tensor([[0], [N]])),
        f"data: edge_index holds the node {N}; x has",
    ),
    "edge below": (data_of(GRAPH, edge_index=torch.tensor([[0], [-1]])), "data: edge_index holds the node -1"),
    "flat x": (
        data_of(GRAPH, x=torch.zeros(N)),
        f"data: x must hold numbers in the shape [nodes, features], not float32[{N}]",
    ),
    "nan in x": (data_of(GRAPH, x=torch.full((N, 1), torch.nan)), "data: features of node 0 are not finite"),
    "overflow": (
        data_of(GRAPH, x=torch.full((N, 1), 1e300, dtype=torch.float64)),
        "data: features of node 0 are not finite",
    ),
    "short y": (data_of(GRAPH, y=torch.zeros(3)), f"data: y must have a row for each of the {N} nodes"),
    "one class": (data_of(GRAPH, y=torch.zeros(N)), "data: y has 1 class(es)"),
    "measurements": (data_of(GRAPH, y=torch.rand(N)), "data: y of node 0 is "),
    "stray class": (data_of(GRAPH, y=torch.arange(N) * 1000), "data: y holds 59000: classes are numbered from 0"),
    "counts": (data_of(GRAPH, y=torch.full((N, 2), 2)), "data: y of node 0, label 0 is 2; it must be 0 or 1"),
    "unlabelled": (
        data_of(GRAPH, y=torch.arange(N) - 1, train_mask=torch.arange(N) < 2, val_mask=None, test_mask=None),
        "data: node 0 is in train_mask, but y has no label for it",
    ),
    "overlap": (data_of(GRAPH, val_mask=torch.ones(N, dtype=torch.bool)), "data: node "),
    "short mask": (data_of(GRAPH, val_mask=torch.ones(3, dtype=torch.bool)), "data: val_mask must hold true or false"),
    "odd mask": (data_of(GRAPH, val_mask=torch.full((N,), 7)), "data: val_mask must hold true or false"),
    "no train mask": (data_of(GRAPH, train_mask=None), "data: has a val_mask and no train_mask"),
    "nothing to train on": (data_of(GRAPH, train_mask=torch.zeros(N, dtype=torch.bool)), "data: there is no training"),
    "weights": (data_of(GRAPH, edge_weight=torch.rand(len(GRAPH.indices))), "data: edge_weight holds weights of edges"),
    "weights of adj_t": (
        ToSparseTensor()(data_of(GRAPH, edge_weight=torch.rand(len(GRAPH.indices)))),
        "data: adj_t holds weights of edges",
    ),
    "weights of dgl": (LikeDgl(GRAPH, {}, {"w": torch.rand(len(GRAPH.indices))}), "data: w holds weights of edges"),
    "two graphs": (OneGraph(data_of(GRAPH), data_of(GRAPH)), "data: holds 2 graphs, and one is trained on"),
    "no graph": ([], "data: holds 0 graphs"),
    "kinds of nodes": (HeteroData(), "data: a heterogeneous graph"),
    "kinds of nodes of dgl": (OfSeveralKinds(GRAPH, {}), "data: a heterogeneous graph"),
    "a number": (3, "data: is a builtins.int; it must be a PyG Data or Dataset, a DGL graph, or an llcg_dist.Graph"),
    "a bad graph": (graph_of([(0, 1)], 4, split=np.zeros(4, np.int8)), "data: there is no training node"),
}


@pytest.mark.parametrize(("data", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_refused_in_one_line(data: Any, message: str) -> None:
    with pytest.raises(UserError) as refused:
        to_graph(data, MemoryConfig())
    assert str(refused.value).startswith(message)
    assert len(str(refused.value).splitlines()) == 1
