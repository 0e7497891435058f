"""The Graph type, for full graphs and parts alike: CSR adjacency, features, labels and split as NumPy arrays."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from llcg_dist.data.csr import Topology, require_undirected_csr, row_positions
from llcg_dist.data.rows import ENTRIES_PER_CHUNK, Array, first_nonfinite, row_ranges, row_slices, select_rows
from llcg_dist.errors import UserError

UNUSED, TRAIN, VAL, TEST = 0, 1, 2, 3
"""Values of `Graph.split`."""

TASKS = ("multiclass", "multilabel")
METRICS = ("accuracy", "f1_micro", "roc_auc")
NAMED_ITEMS = ("node", "class", "feature")
"""Keys of `Graph.names`."""


@dataclass(frozen=True)
class Graph:
    """An undirected graph in CSR form, without duplicate edges or self-loops. Arrays may be memory-mapped.

    indptr    [N+1]; the neighbours of node i are indices[indptr[i]:indptr[i+1]], in ascending order
    indices   [2M], every edge in both directions; the same integer type as indptr, int32 if sizes allow
    features  [N, F] float32, or float16, which is converted to float32 batch by batch
    labels    [N] int64 (multiclass; -1 if unknown, only with split UNUSED), or [N, C] float32 of 0 and 1 (multilabel)
    split     [N] int8: UNUSED (0), TRAIN (1), VAL (2) or TEST (3)
    names     names of nodes [N], classes [C] and features [F] in the user's data, if these are not numbers
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
        """Number of undirected edges M."""
        return len(self.indices) // 2

    @property
    def num_features(self) -> int:
        return int(self.features.shape[1])

    def nodes_in(self, split: int) -> Array:
        """Node ids with this value of split (TRAIN, VAL, TEST or UNUSED), in ascending order."""
        return np.flatnonzero(self.split == split)

    def label_counts(self) -> Array:
        """Number of nodes of each class [C]; for multi-label graphs, number of nodes with each label."""
        if self.task == "multilabel":
            return self.labels.sum(axis=0).astype(np.int64)
        known = self.labels[(self.labels >= 0) & (self.labels < self.num_classes)]
        return np.bincount(known, minlength=self.num_classes)

    def validate(self, name: str) -> "Graph":
        """Checks the graph and returns it. Raises UserError for invalid content; the message starts with `name`."""

        def require(holds: bool, rule: str) -> None:
            if not holds:
                raise UserError(f"{name}: {rule}")

        self._require_shapes(require)
        require_undirected_csr(self.indptr, self.indices, require)
        require(self.features.dtype in (np.float32, np.float16), f"features are {self.features.dtype}, not float32")
        nonfinite = first_nonfinite(self.features)
        require(nonfinite is None, "features of node {} are not finite (column {})".format(*(nonfinite or (0, 0))))
        self._require_labels(require)
        require(bool(np.isin(self.split, (UNUSED, TRAIN, VAL, TEST)).all()), "split holds a value outside 0..3")
        require(bool((self.split == TRAIN).any()), "there is no training node")
        return self

    def _require_shapes(self, require: Callable[[bool, str], None]) -> None:
        n = self.num_nodes
        require(n > 0, "the graph has no nodes")
        require(self.task in TASKS, f"task {self.task!r} is not one of {', '.join(TASKS)}")
        require(self.metric in METRICS, f"metric {self.metric!r} is not one of {', '.join(METRICS)}")
        rule = "metric accuracy needs one class a node (task multiclass)"
        require(self.task == "multiclass" or self.metric != "accuracy", rule)
        require(self.features.ndim == 2, f"features must have two axes, not {self.features.ndim}")
        for what, rows in (("features", self.features), ("labels", self.labels), ("split", self.split)):
            require(len(rows) == n, f"{what} has {len(rows)} rows for {n} nodes")

    def _require_labels(self, require: Callable[[bool, str], None]) -> None:
        n, num_classes = self.num_nodes, self.num_classes
        if self.task == "multiclass":
            require(self.labels.ndim == 1, "multiclass labels must have one axis")
            outside = (self.labels < 0) | (self.labels >= num_classes)
            wrong = np.flatnonzero(outside & (self.split != UNUSED))
            first_wrong = int(wrong[0]) if len(wrong) else 0
            require(len(wrong) == 0, f"label of node {first_wrong} is outside 0..{num_classes - 1}")
        else:
            require(self.labels.shape == (n, num_classes), f"labels must have shape [{n}, {num_classes}]")
            zero_one = all(np.isin(self.labels[rows], (0, 1)).all() for rows in row_slices(self.labels))
            require(zero_one, "multi-label targets must be 0 or 1")


def induced_subgraph(graph: Graph, nodes: Array, lazy: bool = False) -> Graph:
    """The subgraph induced by `nodes` (ascending), which keep their order; `names` are not kept.

    With `lazy`, memory-mapped features are read only when sliced: enough to write them to disk, not to train on them.
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


def induced_topology(graph: Graph, nodes: Array, entries_per_chunk: int = ENTRIES_PER_CHUNK) -> Topology:
    """The edges among `nodes`, renumbered by their order in `nodes`; a chunk of rows is looked at at a time."""
    dtype = graph.indices.dtype
    new_id = np.full(graph.num_nodes, -1, dtype)
    new_id[nodes] = np.arange(len(nodes), dtype=dtype)
    degrees = graph.indptr[nodes + 1] - graph.indptr[nodes]
    before = np.concatenate([[0], np.cumsum(degrees, dtype=np.int64)])
    indptr, pieces = np.zeros(len(nodes) + 1, np.int64), [np.empty(0, dtype)]
    for first, last in row_ranges(before, entries_per_chunk):
        positions, row_ends = row_positions(graph.indptr, nodes[first:last])
        columns = new_id[graph.indices[positions]]
        inside = columns >= 0
        kept_before = np.concatenate([[0], np.cumsum(inside)])
        indptr[first + 1 : last + 1] = indptr[first] + kept_before[row_ends]
        pieces.append(columns[inside])
    return Topology(indptr.astype(graph.indptr.dtype), np.concatenate(pieces))


def reordered_topology(graph: Graph, order: Array) -> tuple[Array, Array]:
    """(indptr, indices) of the graph permuted so that its node i is order[i] of `graph`; rows are not sorted."""
    new_id = np.empty(graph.num_nodes, graph.indices.dtype)
    new_id[order] = np.arange(graph.num_nodes, dtype=new_id.dtype)
    positions, row_ends = row_positions(graph.indptr, order)
    return np.concatenate([[0], row_ends]), new_id[graph.indices[positions]]


def neighbours(graph: Graph, nodes: Array) -> Array:
    """The concatenated neighbour lists of these nodes."""
    return graph.indices[row_positions(graph.indptr, nodes)[0]]
