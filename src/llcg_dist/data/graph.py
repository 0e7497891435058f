"""One graph type for the whole graph, a part of it, and everything between; plain arrays, memory-mapped or not."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from llcg_dist.data.rows import ENTRIES_AT_ONCE, Array, first_not_finite, row_ranges, row_slices, select_rows
from llcg_dist.errors import UserError

UNUSED, TRAIN, VAL, TEST = 0, 1, 2, 3
"""Values of `Graph.split`."""

TASKS = ("multiclass", "multilabel")
METRICS = ("accuracy", "f1_micro", "roc_auc")
NAMED = ("node", "class", "feature")


@dataclass(frozen=True)
class Topology:
    """Row i's neighbours are indices[indptr[i]:indptr[i+1]]; every edge in both directions."""

    indptr: Array
    indices: Array

    @property
    def num_nodes(self) -> int:
        return len(self.indptr) - 1


@dataclass(frozen=True)
class Graph:
    """An undirected, deduplicated graph without self-loops, with what is known about its nodes.

    indptr    [N+1]   row i's neighbours are indices[indptr[i]:indptr[i+1]], in ascending order
    indices   [2M]    every edge in both directions; int32 where sizes allow, the same type as indptr
    features  [N, F]  float32, or float16 to be widened a batch at a time
    labels    [N] int64 (multiclass; -1 where unknown and split is UNUSED) or [N, C] float32 of 0 and 1 (multilabel)
    split     [N]     int8: UNUSED, TRAIN, VAL or TEST
    names             what the user calls each node [N], class [C] and feature [F], where not by number; see NAMED
    """

    indptr: Array
    indices: Array
    features: Array
    labels: Array
    split: Array
    num_classes: int
    task: str = "multiclass"
    metric: str = "accuracy"
    names: Mapping[str, Array] = field(default_factory=dict)

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
        require(self.features.dtype in (np.float32, np.float16), f"features are {self.features.dtype}, not float32")
        bad_value = first_not_finite(self.features)
        require(bad_value is None, "features of node {} are not finite (column {})".format(*(bad_value or (0, 0))))
        if self.task == "multiclass":
            require(self.labels.ndim == 1, "multiclass labels must have one axis")
            bad = (self.labels < 0) | (self.labels >= self.num_classes)
            known = self.split != UNUSED
            wrong = np.flatnonzero(bad & known)
            require(
                len(wrong) == 0,
                f"label of node {int(wrong[0]) if len(wrong) else 0} is outside 0..{self.num_classes - 1}",
            )
        else:
            require(self.labels.shape == (n, self.num_classes), f"labels must have shape [{n}, {self.num_classes}]")
            zero_one = all(np.isin(self.labels[rows], (0, 1)).all() for rows in row_slices(self.labels))
            require(zero_one, "multi-label targets must be 0 or 1")
        require(bool(np.isin(self.split, (UNUSED, TRAIN, VAL, TEST)).all()), "split holds a value outside 0..3")
        require(bool((self.split == TRAIN).any()), "there is no training node")
        return self


def _require_structure(
    indptr: Array, indices: Array, require: Callable[[bool, str], None], entries_at_once: int = ENTRIES_AT_ONCE
) -> None:
    """Sorted, unique, without self-loops, in both directions; what is needed besides is one copy of the topology."""
    n = len(indptr) - 1
    require(indptr[0] == 0 and indptr[-1] == len(indices), "indptr does not span indices")
    require(bool((np.diff(indptr) >= 0).all()), "indptr is not ascending")
    if len(indices) == 0:
        return
    require(int(indices.min()) >= 0 and int(indices.max()) < n, f"an edge ends outside the nodes 0..{n - 1}")
    for first, last in row_ranges(indptr, entries_at_once):
        row, column = _entries(indptr, indices, first, last)
        falls = (row[1:] == row[:-1]) & (column[1:] <= column[:-1])
        require(not bool(falls.any()), "edges are not sorted and unique")
        require(not bool((row == column).any()), "there is a self-loop")
    ones = np.ones(len(indices), np.int8)
    transposed = csr_array((ones, indices, indptr), shape=(n, n)).tocsc()
    both = np.array_equal(transposed.indptr, indptr) and np.array_equal(transposed.indices, indices)
    require(both, "an edge stands in one direction only")


def _entries(indptr: Array, indices: Array, first: int, last: int) -> tuple[Array, Array]:
    """(row, column) of every entry of the rows first..last-1, as int64."""
    ends = indptr[first : last + 1]
    row = np.repeat(np.arange(first, last, dtype=np.int64), np.diff(ends))
    return row, indices[ends[0] : ends[-1]].astype(np.int64)


def undirected_csr(src: Array, dst: Array, num_nodes: int, entries_at_once: int | None = None) -> tuple[Array, Array]:
    """Both directions of every edge, once each, without self-loops, as (indptr, indices).

    Rows are sorted a range at a time, so that what is needed besides the result is small against it. Every range reads
    all edges again, hence few of them, however many edges there are.
    """
    entries_at_once = entries_at_once or max(ENTRIES_AT_ONCE, 2 * len(src) // 16)
    at_most = np.zeros(num_nodes + 1, np.int64)
    pieces = [slice(start, start + entries_at_once) for start in range(0, len(src), entries_at_once)]
    for piece in pieces:
        for ends in (src[piece], dst[piece]):
            at_most[1:] += np.bincount(ends, minlength=num_nodes)
    np.cumsum(at_most, out=at_most)
    counts = np.zeros(num_nodes, np.int64)
    indices = np.empty(int(at_most[-1]), index_dtype(num_nodes, int(at_most[-1])))
    filled = 0
    for first, last in row_ranges(at_most, entries_at_once):
        key = np.concatenate(
            [np.empty(0, np.int64)]
            + [_keys(*ends, first, last, num_nodes) for p in pieces for ends in ((src[p], dst[p]), (dst[p], src[p]))]
        )
        key.sort()
        key = key[np.concatenate([np.ones(min(1, len(key)), bool), key[1:] != key[:-1]])]
        counts[first:last] = np.bincount(key // num_nodes - first, minlength=last - first)
        indices[filled : filled + len(key)] = key % num_nodes
        filled += len(key)
    dtype = index_dtype(num_nodes, filled)
    indptr = np.zeros(num_nodes + 1, dtype)
    np.cumsum(counts, out=indptr[1:])
    indices.resize(filled, refcheck=False)  # in place: no other array looks into it
    return indptr, indices.astype(dtype, copy=False)


def _keys(row: Array, column: Array, first: int, last: int, num_nodes: int) -> Array:
    """row * num_nodes + column of every entry of the rows first..last-1 that is no self-loop."""
    keep = (row >= first) & (row < last) & (row != column)
    key: Array = row[keep].astype(np.int64)
    key *= num_nodes
    key += column[keep]
    return key


def index_dtype(num_nodes: int, num_entries: int) -> type[np.signedinteger[Any]]:
    """int32 halves the bytes of the topology and is what sparse products use inside."""
    return np.int32 if max(num_nodes, num_entries) < 2**31 else np.int64


def induced_subgraph(graph: Graph, nodes: Array, lazy: bool = False) -> Graph:
    """The part of the graph on `nodes` (ascending); edges to other nodes are dropped, order is kept, names are not.

    With `lazy`, features on disk stay there until they are sliced: enough to write them, not to train on them.
    """
    topology = induced_topology(graph, nodes)
    return Graph(
        indptr=topology.indptr,
        indices=topology.indices,
        features=select_rows(graph.features, nodes) if lazy else graph.features[nodes],
        labels=graph.labels[nodes],
        split=graph.split[nodes],
        num_classes=graph.num_classes,
        task=graph.task,
        metric=graph.metric,
    )


def induced_topology(graph: Graph, nodes: Array) -> Topology:
    """The edges among `nodes`, which are numbered in the order they are given."""
    new_id = np.full(graph.num_nodes, -1, graph.indices.dtype)
    new_id[nodes] = np.arange(len(nodes), dtype=new_id.dtype)
    positions, row_ends = row_positions(graph.indptr, nodes)
    neighbours = new_id[graph.indices[positions]]
    inside = neighbours >= 0
    kept_before = np.concatenate([[0], np.cumsum(inside)])
    indptr = np.concatenate([[0], kept_before[row_ends]]).astype(graph.indptr.dtype)
    return Topology(indptr, neighbours[inside])


def reordered_topology(graph: Graph, order: Array) -> tuple[Array, Array]:
    """(indptr, indices) of the graph whose node i is this one's order[i]; rows are not sorted."""
    new_id = np.empty(graph.num_nodes, graph.indices.dtype)
    new_id[order] = np.arange(graph.num_nodes, dtype=new_id.dtype)
    positions, row_ends = row_positions(graph.indptr, order)
    return np.concatenate([[0], row_ends]), new_id[graph.indices[positions]]


def neighbours(graph: Graph, nodes: Array) -> Array:
    """All neighbours of these nodes, one after the other."""
    return graph.indices[row_positions(graph.indptr, nodes)[0]]


def row_positions(indptr: Array, rows: Array) -> tuple[Array, Array]:
    """Where the entries of these rows stand in `indices`, row after row, and the end of each row among them."""
    starts = indptr[rows].astype(np.int64)
    counts = indptr[rows + 1].astype(np.int64) - starts
    row_ends = np.cumsum(counts)
    return np.arange(counts.sum()) + np.repeat(starts - (row_ends - counts), counts), row_ends


def edges_between_parts(graph: Graph, assignment: Array, num_parts: int) -> Array:
    """[P, P]: neighbours in part q of nodes in part p. Symmetric; an edge inside a part counts twice, at both ends."""
    counts = np.zeros(num_parts**2, np.int64)
    for first, last in row_ranges(graph.indptr, ENTRIES_AT_ONCE):
        row, column = _entries(graph.indptr, graph.indices, first, last)
        pairs = assignment[row].astype(np.int64) * num_parts + assignment[column]
        counts += np.bincount(pairs, minlength=num_parts**2)
    return counts.reshape(num_parts, num_parts)


def cut_edge_counts(graph: Graph, assignment: Array, num_parts: int) -> Array:
    """[P]: how many edges leave each part; their sum is twice the number of cut edges."""
    between = edges_between_parts(graph, assignment, num_parts)
    return between.sum(axis=1) - between.diagonal()


def cut_edge_ends(graph: Graph, assignment: Array) -> Array:
    """[N] of bool: nodes with a neighbour in another part."""
    ends = np.zeros(graph.num_nodes, bool)
    for first, last in row_ranges(graph.indptr, ENTRIES_AT_ONCE):
        row, column = _entries(graph.indptr, graph.indices, first, last)
        ends[row[assignment[row] != assignment[column]]] = True
    return ends


def degrees_within_parts(graph: Graph, assignment: Array) -> Array:
    """[N] float32: every node's neighbours in its own part."""
    found = np.zeros(graph.num_nodes, np.float32)
    for first, last in row_ranges(graph.indptr, ENTRIES_AT_ONCE):
        row, column = _entries(graph.indptr, graph.indices, first, last)
        inside = row[assignment[row] == assignment[column]]
        found[first:last] = np.bincount(inside - first, minlength=last - first)
    return found
