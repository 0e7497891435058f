"""dataset=files: the user's own graph from files of edges, features, labels and a split (docs/guides/graph.md).

The file of features determines the set of nodes; the other files refer to them by the same ids.
"""

import dataclasses
from pathlib import Path

import numpy as np

from llcg_dist.config.dataset import check_fractions
from llcg_dist.config.files import FilesConfig
from llcg_dist.data.datasets.edge_files import read_edges
from llcg_dist.data.datasets.feature_files import read_features
from llcg_dist.data.datasets.labels import Labels, read_labels
from llcg_dist.data.datasets.nodes import NodeIds
from llcg_dist.data.datasets.split_files import read_split
from llcg_dist.data.datasets.splits import split_by_fractions
from llcg_dist.data.datasets.tables import require_file
from llcg_dist.data.graph import TEST, TRAIN, UNUSED, Graph
from llcg_dist.data.rows import Array
from llcg_dist.data.store import file_sha256
from llcg_dist.data.workspace import Workspace, use_workspace
from llcg_dist.errors import UserError

_FILES = ("edges", "features", "labels", "split", "train_mask", "val_mask", "test_mask")
"""Settings that name a file."""


def load(config: FilesConfig, workspace: Workspace | None = None) -> Graph:
    """Reads the four files into a Graph; edges and, unless they are mapped where they are, features are put together in
    the workspace."""
    check_fractions(config)
    labels_file = _path(config, "labels")
    _require_files(config)
    with use_workspace(workspace, config.memory) as place:
        nodes, graph = _read_unlabelled(config, place)
    labels = read_labels(labels_file, config, nodes)
    return _labelled(config, graph, labels, _split(config, nodes, labels))


def load_to_predict(config: FilesConfig, trained: Graph) -> Graph:
    """A graph to predict on with a model of the graph `trained`: edges and features, and labels where they are given.

    Labels are classes of the trained graph. Without a split every labelled node is a test node.
    """
    _require_files(config)
    with use_workspace(None, config.memory) as place:
        nodes, graph = _read_unlabelled(config, place)
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


def _read_unlabelled(config: FilesConfig, workspace: Workspace) -> tuple[NodeIds, Graph]:
    """Edges and features; every label is -1 (unknown), every node UNUSED."""
    nodes, features, feature_names = read_features(_path(config, "features"), config, workspace)
    topology = read_edges(_path(config, "edges"), config, nodes, workspace)
    unknown, unused = np.full(len(nodes), -1, np.int64), np.full(len(nodes), UNUSED, np.int8)
    optional_names = {"node": nodes.names, "feature": feature_names}
    names = {item: values for item, values in optional_names.items() if values is not None}
    return nodes, Graph(topology.indptr, topology.indices, features, unknown, unused, num_classes=0, names=names)


def _path(config: FilesConfig, setting: str) -> Path:
    path = getattr(config, setting)
    if path is None:
        raise UserError(f"dataset.{setting}: must name a file with dataset=files (llcg help graph)")
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
