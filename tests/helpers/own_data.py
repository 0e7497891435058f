"""A small community graph as the objects of graph libraries, and a function that returns it as a user's would."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data, InMemoryDataset

from llcg_dist.data.graph import TEST, TRAIN, VAL, Graph
from tests.helpers.graphs import community_graph


def edge_index_of(graph: Graph) -> Tensor:
    row = np.repeat(np.arange(graph.num_nodes), np.diff(graph.indptr))
    return torch.from_numpy(np.stack([row, graph.indices]).astype(np.int64))


def tensors_of(graph: Graph) -> dict[str, Any]:
    """Under PyG's names."""
    masks = {"train_mask": TRAIN, "val_mask": VAL, "test_mask": TEST}
    return {
        "x": torch.from_numpy(graph.features),
        "edge_index": edge_index_of(graph),
        "y": torch.from_numpy(graph.labels),
        **{name: torch.from_numpy(graph.split == value) for name, value in masks.items()},
    }


def data_of(graph: Graph, **changes: Any) -> Data:
    """A PyG Data object; None takes a field away."""
    return Data(**{name: value for name, value in (tensors_of(graph) | changes).items() if value is not None})


class OneGraph(InMemoryDataset):
    """A PyG dataset of these graphs."""

    def __init__(self, *graphs: Data) -> None:
        super().__init__()
        self.data, self.slices = self.collate(list(graphs))


class LikeDgl:
    """What is read of a DGL graph."""

    is_homogeneous = True

    def __init__(self, graph: Graph, names: dict[str, str], edata: dict[str, Tensor] | None = None) -> None:
        content = tensors_of(graph)
        src, dst = content.pop("edge_index")
        self.edges: Callable[[], tuple[Tensor, Tensor]] = lambda: (src, dst)
        self.ndata = {names.get(name, name): value for name, value in content.items()}
        self.edata = {"_ID": torch.arange(len(src))} | (edata or {})


def load(nodes: int = 120, seed: int = 0) -> Data:
    """As a user's own function for dataset=own."""
    return data_of(community_graph(nodes, seed))
