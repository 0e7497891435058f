"""What a graph library's object holds, as NumPy arrays: a PyG Data or Dataset, a DGL graph, or a dictionary of tensors.

DGL graphs are known by their methods: DGL itself is imported by data/metis_process.py alone.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from llcg_dist.data.rows import Array
from llcg_dist.errors import UserError

log = logging.getLogger(__name__)

_NAMES = {
    "x": ("x", "feat", "features"),
    "y": ("y", "label", "labels"),
    "train": ("train_mask",),
    "val": ("val_mask", "valid_mask"),
    "test": ("test_mask",),
}
"""Names under which the libraries and their users keep what we read, PyG's first."""

_WEIGHTS = ("edge_weight", "weight", "w")
_OGB_SPLITS = {"train": "train", "valid": "val", "test": "test"}


@dataclass(frozen=True)
class Fields:
    """Edges [2, M], and features, labels and masks by name (x, y, train, val, test) where the object has them."""

    edges: Array
    values: Mapping[str, Array]


def single_graph(data: Any, source: str) -> tuple[Any, Mapping[str, Array]]:
    """(the one graph of a dataset or list, or the object itself; {split: nodes} that OGB keeps beside the graph)."""
    if not _is_collection(data):
        return data, {}
    if len(data) != 1:
        raise UserError(f"{source}: holds {len(data)} graphs, and one is trained on; give one of them, such as data[0]")
    beside = data.get_idx_split() if hasattr(type(data), "get_idx_split") else {}
    return data[0], {ours: as_array(beside[theirs]) for theirs, ours in _OGB_SPLITS.items() if theirs in beside}


def _is_collection(data: Any) -> bool:
    """Whether it is a list, or a dataset of PyG's, DGL's or OGB's: these make their graphs with `process`."""
    of_library = any(callable(getattr(type(data), name, None)) for name in ("process", "get_idx_split"))
    return isinstance(data, list | tuple) or (of_library and hasattr(type(data), "__getitem__"))


def read_fields(graph: Any, source: str) -> Fields:
    """The content of one graph; UserError for an object of another kind, for several kinds of nodes, for weights."""
    from torch_geometric.data import Data, HeteroData

    if isinstance(graph, HeteroData) or getattr(graph, "is_homogeneous", True) is False:
        rule = "models here know one kind of nodes and edges; make it homogeneous first, e.g. data.to_homogeneous()"
        raise UserError(f"{source}: a heterogeneous graph: {rule}")
    if callable(getattr(graph, "edges", None)) and hasattr(graph, "ndata"):
        return _of_dgl(graph, source)
    if isinstance(graph, Data):
        return _of_mapping(graph.to_dict(), source)
    if isinstance(graph, Mapping):
        return _of_mapping(graph, source)
    kinds = "a PyG Data or Dataset, a DGL graph, or an llcg_dist.Graph"
    raise UserError(f"{source}: is a {type(graph).__module__}.{type(graph).__qualname__}; it must be {kinds}")


def _of_mapping(content: Mapping[str, Any], source: str) -> Fields:
    """PyG's names: edge_index [2, M] or adj_t [N, N], x, y, train_mask."""
    content = {name: value for name, value in content.items() if value is not None}
    if "edge_index" in content:
        edges = as_array(content["edge_index"])
    elif "adj_t" in content:
        edges, weights = _entries(content["adj_t"])
        _require_no_weights("adj_t", weights, source)
    else:
        raise UserError(f"{source}: has no edge_index; it must hold the edges as whole numbers [2, edges]")
    if edges.ndim != 2 or len(edges) != 2 or edges.dtype.kind not in "iu":
        actual = f"{edges.dtype}{list(edges.shape)}"
        raise UserError(f"{source}: edge_index must hold whole numbers in the shape [2, edges], not {actual}")
    of_edges = {name: value for name, value in content.items() if name.startswith("edge_") and name != "edge_index"}
    _check_edge_values(of_edges, source)
    return Fields(edges.astype(np.int64, copy=False), _named_values(content))


def _of_dgl(graph: Any, source: str) -> Fields:
    edges = np.stack([as_array(ends) for ends in graph.edges()])
    _check_edge_values(dict(graph.edata), source)
    return Fields(edges, _named_values(dict(graph.ndata)))


def _named_values(content: Mapping[str, Any]) -> dict[str, Array]:
    found = {}
    for ours, theirs in _NAMES.items():
        name = next((name for name in theirs if name in content), None)
        if name is not None:
            found[ours] = as_array(content[name])
    return found


def _check_edge_values(values: Mapping[str, Any], source: str) -> None:
    """Weights are refused: a model that uses them would train otherwise. Other values of edges are said not to be
    used, because published graphs often have some."""
    for name in _WEIGHTS:
        if name in values:
            _require_no_weights(name, as_array(values[name]), source)
    unused = sorted(name for name in values if name not in _WEIGHTS and not name.startswith("_"))
    if unused:
        log.warning("%s: %s is not used: edges have no values here, all count alike", source, ", ".join(unused))


def _require_no_weights(name: str, weights: Array | None, source: str) -> None:
    if weights is not None and not (weights == 1).all():
        rule = "edges have no weights here, all count alike; to train without them, remove them from the data"
        raise UserError(f"{source}: {name} holds weights of edges: {rule}")


def _entries(matrix: Any) -> tuple[Array, Array | None]:
    """(edges [2, M], weights) of adj_t, which is a sparse tensor of torch's or a SparseTensor of torch_sparse's."""
    if callable(getattr(matrix, "coo", None)):
        row, column, value = matrix.coo()
    else:
        coo = matrix.to_sparse_coo().coalesce()
        (row, column), value = coo.indices(), coo.values()
    return np.stack([as_array(column), as_array(row)]), None if value is None else as_array(value)


def as_array(value: Any) -> Array:
    """A tensor on any device, a sparse matrix, an array or a list as an array."""
    import torch

    if callable(getattr(value, "to_dense", None)):
        value = value.to_dense()
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu()
        return np.asarray((value.float() if value.dtype == torch.bfloat16 else value).numpy())
    return np.asarray(value.toarray() if callable(getattr(value, "toarray", None)) else value)
