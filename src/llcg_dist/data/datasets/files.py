"""dataset=files: the user's own graph from files of edges, features, labels and an optional split (docs/data.md).

The file of features determines the set of nodes; the other files refer to them by the same ids.
"""

import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd

from llcg_dist.config.datasets import FilesConfig
from llcg_dist.data.csr import undirected_csr
from llcg_dist.data.datasets.labels import Labels, read_labels
from llcg_dist.data.datasets.nodes import NodeIds
from llcg_dist.data.datasets.splits import check_fractions, split_by_fractions
from llcg_dist.data.datasets.tables import is_npy, read_npy, read_table
from llcg_dist.data.graph import TEST, TRAIN, UNUSED, VAL, Graph
from llcg_dist.data.rows import Array, first_nonfinite
from llcg_dist.data.store import file_sha256
from llcg_dist.errors import UserError

_SPLITS = {"train": TRAIN, "val": VAL, "test": TEST}


def load(config: FilesConfig) -> Graph:
    """Reads the four files into a Graph."""
    check_fractions(config)
    labels_file = _path(config, "labels")
    nodes, graph = _read_unlabelled(config)
    labels = read_labels(labels_file, nodes)
    return dataclasses.replace(
        graph,
        labels=labels.values,
        split=_split(config, nodes, labels),
        num_classes=len(labels.classes),
        task=labels.task,
        metric=config.metric or ("accuracy" if labels.task == "multiclass" else "f1_micro"),
        names=dict(graph.names) | {"class": labels.classes},
    )


def load_unlabelled(config: FilesConfig) -> Graph:
    """A graph of edges and features alone, to predict on."""
    return _read_unlabelled(config)[1]


def _read_unlabelled(config: FilesConfig) -> tuple[NodeIds, Graph]:
    """Edges and features; every label is -1 (unknown), every node UNUSED."""
    nodes, features, feature_names = _read_features(_path(config, "features"))
    indptr, indices = _read_edges(_path(config, "edges"), nodes)
    unknown, unused = np.full(len(nodes), -1, np.int64), np.full(len(nodes), UNUSED, np.int8)
    optional_names = {"node": nodes.names, "feature": feature_names}
    names = {item: values for item, values in optional_names.items() if values is not None}
    return nodes, Graph(indptr, indices, features, unknown, unused, num_classes=0, names=names)


def _path(config: FilesConfig, setting: str) -> Path:
    path = getattr(config, setting)
    if path is None:
        raise UserError(f"dataset.{setting}: must name a file with dataset=files (docs/data.md)")
    return Path(path)


def content_hashes(config: FilesConfig) -> dict[str, str]:
    """{setting: sha256} of the files that exist."""
    hashes = {}
    for setting in ("edges", "features", "labels", "split"):
        path = getattr(config, setting)
        if path is not None and Path(path).is_file():
            hashes[setting] = file_sha256(Path(path))
    return hashes


def _read_features(path: Path) -> tuple[NodeIds, Array, Array | None]:
    """(ids, [N, F] float32 or float16, names of the columns). An .npy file of such floats stays memory-mapped."""
    if is_npy(path):
        values = read_npy(path)
        if values.ndim != 2 or 0 in values.shape:
            raise UserError(f"{path}: must have shape [nodes, features], not {list(values.shape)}")
        if values.dtype not in (np.float32, np.float16):
            with np.errstate(over="ignore"):
                values = np.asarray(values, np.float32)
        nonfinite = first_nonfinite(values)
        if nonfinite:
            place = "row {}, column {}".format(*nonfinite)
            raise UserError(f"{path}: {place} is {values[nonfinite]}; it must be a finite number")
        return NodeIds.numbered(path, len(values)), values, None
    table = read_table(path, ["node"], text=["node"])
    columns = [column for column in table.columns if column != "node"]
    if not columns or len(table) == 0:
        raise UserError(f"{path}: has no {'row' if columns else 'column besides node'}; a node needs features")
    features = np.empty((len(table), len(columns)), np.float32)
    for i, column in enumerate(columns):
        features[:, i] = table.numbers(column)
    return NodeIds.named(table), features, np.array(columns, np.str_)


def _read_edges(path: Path, nodes: NodeIds) -> tuple[Array, Array]:
    """(indptr, indices) of the undirected graph."""
    if is_npy(path):
        edges = read_npy(path)
        if edges.ndim != 2 or len(edges) != 2 or edges.dtype.kind not in "iu":
            actual = f"{edges.dtype}{list(edges.shape)}"
            raise UserError(f"{path}: must hold whole numbers in the shape [2, edges], not {actual}")
        src, dst = (nodes.index_of(pd.Series(row), lambda i: f"{path}: column {i}: node") for row in edges)
    else:
        columns = ["src", "dst"]
        table = read_table(path, columns, text=nodes.text_columns(columns), only_required=True)
        src, dst = (nodes.index_of_column(table, column) for column in columns)
    return undirected_csr(src, dst, len(nodes))


def _split(config: FilesConfig, nodes: NodeIds, labels: Labels) -> Array:
    """[N] int8: read from dataset.split, or drawn by fractions from the labelled nodes."""
    if config.split is None:
        rng = np.random.default_rng(np.random.SeedSequence(config.seed))
        split = split_by_fractions(np.flatnonzero(labels.known), len(nodes), config, rng)
        source = f"dataset.train_fraction={config.train_fraction} of {int(labels.known.sum())} labelled nodes"
    else:
        split = _read_split(Path(config.split), nodes, labels, config)
        source = config.split
    if not (split == TRAIN).any():
        raise UserError(f"{source}: the training set is empty; at least one node must be in train")
    return split


def _read_split(path: Path, nodes: NodeIds, labels: Labels, config: FilesConfig) -> Array:
    """[N] int8: the column `split`; an empty cell is UNUSED. Nodes of a split must have a label."""
    table = read_table(path, ["node", "split"], text=[*nodes.text_columns(["node"]), "split"])
    cells = table.frame["split"]
    wrong = np.flatnonzero((cells.notna() & ~cells.isin(list(_SPLITS))).to_numpy())
    if len(wrong):
        rule = f"must be one of {', '.join(_SPLITS)}, or empty for a node that is in none"
        raise UserError(f"{table.location(wrong[0])}: column 'split' is {str(cells.iloc[wrong[0]])!r}; {rule}")

    def overlap(first: int, second: int) -> str:
        return f"in {cells.iloc[first]} and in {cells.iloc[second]}: splits must not overlap"

    order = nodes.row_of_each_node(table, overlap)
    split = cells.map(_SPLITS).fillna(UNUSED).to_numpy(np.int8)
    unlabelled = np.flatnonzero((split[order] != UNUSED) & ~labels.known)
    if len(unlabelled):
        row = order[unlabelled[0]]
        raise UserError(f"{table.location(row)}: in {cells.iloc[row]}, but {config.labels} has no label for this node")
    return split[order]
