"""dataset=files: the user's own graph from files of edges, features, labels and an optional split (docs/data.md).

The file of features determines the set of nodes; the other files refer to them by the same ids.
"""

import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd

from llcg_dist.config.files import FilesConfig
from llcg_dist.data.csr import undirected_csr
from llcg_dist.data.datasets.labels import Labels, read_labels
from llcg_dist.data.datasets.nodes import NodeIds
from llcg_dist.data.datasets.split_files import read_split
from llcg_dist.data.datasets.splits import check_fractions, split_by_fractions
from llcg_dist.data.datasets.tables import Table, is_npy, read_npy, read_table, require_file
from llcg_dist.data.graph import TEST, TRAIN, UNUSED, Graph
from llcg_dist.data.rows import Array, first_nonfinite
from llcg_dist.data.store import file_sha256
from llcg_dist.errors import UserError

_FILES = ("edges", "features", "labels", "split", "train_mask", "val_mask", "test_mask")
"""Settings that name a file."""


def load(config: FilesConfig) -> Graph:
    """Reads the four files into a Graph."""
    check_fractions(config)
    labels_file = _path(config, "labels")
    _require_files(config)
    nodes, graph = _read_unlabelled(config)
    labels = read_labels(labels_file, config, nodes)
    return _labelled(config, graph, labels, _split(config, nodes, labels))


def load_to_predict(config: FilesConfig, trained: Graph) -> Graph:
    """A graph to predict on with a model of the graph `trained`: edges and features, and labels where they are given.

    Labels are classes of the trained graph. Without a split every labelled node is a test node.
    """
    _require_files(config)
    nodes, graph = _read_unlabelled(config)
    if config.labels is None:
        return graph
    classes = trained.names.get("class", np.arange(trained.num_classes))
    labels = read_labels(Path(config.labels), config, nodes, classes)
    if labels.task != trained.task:
        raise UserError(f"{config.labels}: is {labels.task}, the model was trained on a {trained.task} graph")
    has_split = config.split is not None or bool(config.masks)
    split = read_split(config, nodes, labels) if has_split else np.where(labels.known, TEST, UNUSED).astype(np.int8)
    return _labelled(config, graph, labels, split)


def _labelled(config: FilesConfig, graph: Graph, labels: Labels, split: Array) -> Graph:
    return dataclasses.replace(
        graph,
        labels=labels.values,
        split=split,
        num_classes=len(labels.classes),
        task=labels.task,
        metric=config.metric or ("accuracy" if labels.task == "multiclass" else "f1_micro"),
        names=dict(graph.names) | {"class": labels.classes},
    )


def _read_unlabelled(config: FilesConfig) -> tuple[NodeIds, Graph]:
    """Edges and features; every label is -1 (unknown), every node UNUSED."""
    nodes, features, feature_names = _read_features(_path(config, "features"), config)
    indptr, indices = _read_edges(_path(config, "edges"), config, nodes)
    unknown, unused = np.full(len(nodes), -1, np.int64), np.full(len(nodes), UNUSED, np.int8)
    optional_names = {"node": nodes.names, "feature": feature_names}
    names = {item: values for item, values in optional_names.items() if values is not None}
    return nodes, Graph(indptr, indices, features, unknown, unused, num_classes=0, names=names)


def _path(config: FilesConfig, setting: str) -> Path:
    path = getattr(config, setting)
    if path is None:
        raise UserError(f"dataset.{setting}: must name a file with dataset=files (llcg help data)")
    return Path(path)


def _require_files(config: FilesConfig) -> None:
    """Raises UserError for a file that is not there, before the first one is read, which may take minutes."""
    for setting in _FILES:
        path = getattr(config, setting)
        if path is not None:
            require_file(Path(path))


def content_hashes(config: FilesConfig) -> dict[str, str]:
    """{setting: sha256} of the files that exist."""
    hashes = {}
    for setting in _FILES:
        path = getattr(config, setting)
        if path is not None and Path(path).is_file():
            hashes[setting] = file_sha256(Path(path))
    return hashes


def _read_features(path: Path, config: FilesConfig) -> tuple[NodeIds, Array, Array | None]:
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
    node = config.columns.node
    table = read_table(path, config, ["node"], text=[node])
    columns = [column for column in table.columns if column != node]
    if not columns or len(table) == 0:
        raise UserError(f"{path}: has no {'row' if columns else f'column besides {node}'}; a node needs features")
    features = np.empty((len(table), len(columns)), np.float32)
    for i, column in enumerate(columns):
        features[:, i] = table.numbers(column)
    return NodeIds.named(table), features, np.array(columns, np.str_)


def _read_edges(path: Path, config: FilesConfig, nodes: NodeIds) -> tuple[Array, Array]:
    """(indptr, indices) of the undirected graph."""
    if is_npy(path):
        edges = read_npy(path)
        if edges.ndim != 2 or len(edges) != 2 or edges.dtype.kind not in "iu":
            actual = f"{edges.dtype}{list(edges.shape)}"
            turned = "; save its transpose" if edges.ndim == 2 and edges.shape[1] == 2 else ""
            raise UserError(f"{path}: must hold whole numbers in the shape [2, edges], not {actual}{turned}")
        src, dst = (nodes.index_of(pd.Series(row), lambda i: f"{path}: column {i}: node") for row in edges)
    else:
        columns = [config.columns.src, config.columns.dst]
        table = read_table(path, config, ["src", "dst"], text=nodes.text_columns(columns), only_roles=True)
        _require_no_weights(table)
        src, dst = (nodes.index_of_column(table, column) for column in columns)
    return undirected_csr(src, dst, len(nodes))


def _require_no_weights(table: Table) -> None:
    """Raises UserError for a further column of numbers beside the ends of the edges: no model here would use it."""
    if table.unread_numbers:
        name = table.unread_numbers[0]
        rule = f"edges have no weights here, all count alike; to train without it: dataset.columns.ignore=[{name}]"
        raise UserError(f"{table.path}: column {name!r} holds numbers: {rule}")


def _split(config: FilesConfig, nodes: NodeIds, labels: Labels) -> Array:
    """[N] int8: read from dataset.split or the masks, or drawn by fractions from the labelled nodes."""
    if config.split is None and not config.masks:
        rng = np.random.default_rng(np.random.SeedSequence(config.seed))
        split = split_by_fractions(np.flatnonzero(labels.known), len(nodes), config, rng)
        source = f"dataset.train_fraction={config.train_fraction} of {int(labels.known.sum())} labelled nodes"
    else:
        split = read_split(config, nodes, labels)
        source = config.split or str(config.train_mask)
    if not (split == TRAIN).any():
        raise UserError(f"{source}: the training set is empty; at least one node must be in train")
    return split
