"""One graph type for the whole graph, a part of it, and everything between; plain arrays, memory-mapped or not."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from llcg_dist.errors import UserError

Array = npt.NDArray[Any]

UNUSED, TRAIN, VAL, TEST = 0, 1, 2, 3
"""Values of `Graph.split`."""

TASKS = ("multiclass", "multilabel")
METRICS = ("accuracy", "f1_micro", "roc_auc")


@dataclass(frozen=True)
class Graph:
    """An undirected, deduplicated graph without self-loops, with what is known about its nodes.

    indptr    [N+1]   row i's neighbours are indices[indptr[i]:indptr[i+1]], in ascending order
    indices   [2M]    every edge in both directions; int32 where sizes allow, the same type as indptr
    features  [N, F]  float32
    labels    [N] int64 (multiclass) or [N, C] float32 of 0 and 1 (multilabel)
    split     [N]     int8: UNUSED, TRAIN, VAL or TEST
    """

    indptr: Array
    indices: Array
    features: Array
    labels: Array
    split: Array
    num_classes: int
    task: str = "multiclass"
    metric: str = "accuracy"

    @property
    def num_nodes(self) -> int:
        return len(self.indptr) - 1

    @property
    def num_edges(self) -> int:
        """Undirected edges."""
        return len(self.indices) // 2

    @property
    def num_features(self) -> int:
        return int(self.features.shape[1])

    def nodes_in(self, split: int) -> Array:
        return np.flatnonzero(self.split == split)

    def label_counts(self) -> Array:
        """Nodes of each class; multi-label: nodes that carry each label."""
        if self.task == "multilabel":
            return self.labels.sum(axis=0).astype(np.int64)
        known = self.labels[(self.labels >= 0) & (self.labels < self.num_classes)]
        return np.bincount(known, minlength=self.num_classes)

    def validate(self, name: str) -> "Graph":
        """Raises UserError for content that would train to nonsense; `name` says whose it is."""

        def require(holds: bool, rule: str) -> None:
            if not holds:
                raise UserError(f"{name}: {rule}")

        n = self.num_nodes
        require(n > 0, "the graph has no nodes")
        require(self.task in TASKS, f"task {self.task!r} is not one of {', '.join(TASKS)}")
        require(self.metric in METRICS, f"metric {self.metric!r} is not one of {', '.join(METRICS)}")
        rule = "metric accuracy needs one class a node (task multiclass)"
        require(self.task == "multiclass" or self.metric != "accuracy", rule)
        require(self.features.ndim == 2, f"features must have two axes, not {self.features.ndim}")
        for what, rows in (("features", self.features), ("labels", self.labels), ("split", self.split)):
            require(len(rows) == n, f"{what} has {len(rows)} rows for {n} nodes")
        _require_structure(self.indptr, self.indices, require)
        finite = np.isfinite(self.features).all(axis=1)
        require(bool(finite.all()), f"features of node {int(np.argmin(finite))} are not finite")
        if self.task == "multiclass":
            require(self.labels.ndim == 1, "multiclass labels must have one axis")
            bad = (self.labels < 0) | (self.labels >= self.num_classes)
            known = self.split != UNUSED
            wrong = np.flatnonzero(bad & known)
            require(len(wrong) == 0, f"label of node {wrong[:1]} is outside 0..{self.num_classes - 1}")
        else:
            require(self.labels.shape == (n, self.num_classes), f"labels must have shape [{n}, {self.num_classes}]")
            require(bool(np.isin(self.labels, (0, 1)).all()), "multi-label targets must be 0 or 1")
        require(bool(np.isin(self.split, (UNUSED, TRAIN, VAL, TEST)).all()), "split holds a value outside 0..3")
        require(bool((self.split == TRAIN).any()), "there is no training node")
        return self


def _require_structure(indptr: Array, indices: Array, require: Any) -> None:
    n = len(indptr) - 1
    require(indptr[0] == 0 and indptr[-1] == len(indices), "indptr does not span indices")
    counts = np.diff(indptr)
    require(bool((counts >= 0).all()), "indptr is not ascending")
    if len(indices) == 0:
        return
    require(int(indices.min()) >= 0 and int(indices.max()) < n, f"an edge ends outside the nodes 0..{n - 1}")
    row = np.repeat(np.arange(n, dtype=np.int64), counts)
    key = row * n + indices
    require(bool((np.diff(key) > 0).all()), "edges are not sorted and unique")
    require(not bool((row == indices).any()), "there is a self-loop")
    key_back = indices.astype(np.int64) * n + row
    key_back.sort()
    require(bool((key_back == key).all()), "an edge stands in one direction only")


def undirected_csr(src: Array, dst: Array, num_nodes: int) -> tuple[Array, Array]:
    """Both directions of every edge, once each, without self-loops, as (indptr, indices)."""
    keep = src != dst
    src, dst = src[keep].astype(np.int64), dst[keep].astype(np.int64)
    key = np.concatenate([src * num_nodes + dst, dst * num_nodes + src])
    key.sort()
    if len(key):
        key = key[np.concatenate([[True], np.diff(key) > 0])]
    dtype = index_dtype(num_nodes, len(key))
    indptr = np.zeros(num_nodes + 1, dtype)
    np.cumsum(np.bincount(key // num_nodes, minlength=num_nodes), out=indptr[1:])
    return indptr, (key % num_nodes).astype(dtype)


def index_dtype(num_nodes: int, num_entries: int) -> type[np.signedinteger[Any]]:
    """int32 halves the bytes of the topology and is what sparse products use inside."""
    return np.int32 if max(num_nodes, num_entries) < 2**31 else np.int64


def induced_subgraph(graph: Graph, nodes: Array) -> Graph:
    """The part of the graph on `nodes` (ascending); edges to other nodes are dropped, order is kept."""
    new_id = np.full(graph.num_nodes, -1, graph.indices.dtype)
    new_id[nodes] = np.arange(len(nodes), dtype=new_id.dtype)
    positions, row_ends = _row_positions(graph.indptr, nodes)
    neighbours = new_id[graph.indices[positions]]
    inside = neighbours >= 0
    kept_before = np.concatenate([[0], np.cumsum(inside)])
    return Graph(
        indptr=np.concatenate([[0], kept_before[row_ends]]).astype(graph.indptr.dtype),
        indices=neighbours[inside],
        features=graph.features[nodes],
        labels=graph.labels[nodes],
        split=graph.split[nodes],
        num_classes=graph.num_classes,
        task=graph.task,
        metric=graph.metric,
    )


def reordered_topology(graph: Graph, order: Array) -> tuple[Array, Array]:
    """(indptr, indices) of the graph whose node i is this one's order[i]; rows are not sorted."""
    new_id = np.empty(graph.num_nodes, graph.indices.dtype)
    new_id[order] = np.arange(graph.num_nodes, dtype=new_id.dtype)
    positions, row_ends = _row_positions(graph.indptr, order)
    return np.concatenate([[0], row_ends]), new_id[graph.indices[positions]]


def _row_positions(indptr: Array, rows: Array) -> tuple[Array, Array]:
    """Where the entries of these rows stand in `indices`, row after row, and the end of each row among them."""
    starts = indptr[rows].astype(np.int64)
    counts = indptr[rows + 1].astype(np.int64) - starts
    row_ends = np.cumsum(counts)
    return np.arange(row_ends[-1]) + np.repeat(starts - (row_ends - counts), counts), row_ends


def cut_edge_counts(graph: Graph, assignment: Array, num_parts: int) -> Array:
    """[P]: how many edges leave each part; their sum is twice the number of cut edges."""
    row_part = np.repeat(assignment, np.diff(graph.indptr))
    leaving = row_part != assignment[graph.indices]
    return np.bincount(row_part[leaving], minlength=num_parts)
