"""A graph library's object -> Graph: undirected, deduplicated, with the object's masks as its split."""

import dataclasses
from typing import Any

import numpy as np

from llcg_dist.config.own_data import ObjectConfig
from llcg_dist.data.csr import undirected_csr
from llcg_dist.data.datasets.object_fields import read_fields, single_graph
from llcg_dist.data.datasets.splits import SPLITS, split_by_fractions, split_from_masks, split_name
from llcg_dist.data.graph import UNUSED, Graph
from llcg_dist.data.rows import Array
from llcg_dist.errors import UserError


def to_graph(data: Any, config: ObjectConfig) -> Graph:
    """The validated Graph of a PyG Data or Dataset, a DGL graph, a dictionary of tensors under PyG's names, or a Graph.

    Labels [N] or [N, 1] are classes, negative or NaN where unknown; [N, C] of 0 and 1 are several labels a node.
    """
    source = config.described
    data, nodes_of_splits = single_graph(data, source)
    if isinstance(data, Graph):
        metric = data.metric if config.metric is None else str(config.metric)
        return dataclasses.replace(data, metric=metric).validate(source)
    unlabelled, values = _read(data, source)
    if "y" not in values:
        raise UserError(f"{source}: has no y; it must hold a class per node [N], or several labels [N, C] of 0 and 1")
    labels, known = _labels(values["y"], unlabelled.num_nodes, source)
    masks = {name: values[name] for name in SPLITS if name in values}
    masks |= {name: np.isin(np.arange(len(labels)), nodes) for name, nodes in nodes_of_splits.items()}
    split = _split(masks, known, config)
    several = labels.ndim == 2
    graph = dataclasses.replace(
        unlabelled,
        labels=labels,
        split=split,
        num_classes=labels.shape[1] if several else int(labels.max()) + 1,
        task="multilabel" if several else "multiclass",
        metric=str(config.metric or ("f1_micro" if several else "accuracy")),
    )
    return graph.validate(source)


def to_unlabelled_graph(data: Any, source: str) -> Graph:
    """Edges and features alone, to predict on; every label is -1 (unknown), every node UNUSED."""
    data, _ = single_graph(data, source)
    return without_labels(data) if isinstance(data, Graph) else _read(data, source)[0]


def without_labels(graph: Graph) -> Graph:
    """The graph with every label -1 (unknown) and every node UNUSED."""
    unknown, unused = np.full(graph.num_nodes, -1, np.int64), np.full(graph.num_nodes, UNUSED, np.int8)
    return dataclasses.replace(graph, labels=unknown, split=unused, num_classes=0, task="multiclass", metric="accuracy")


def _read(data: Any, source: str) -> tuple[Graph, dict[str, Array]]:
    """(edges and features without labels, the object's values by name)."""
    fields = read_fields(data, source)
    values = dict(fields.values)
    if "x" not in values:
        advice = "add some, e.g. with torch_geometric.transforms.OneHotDegree(max_degree) or Constant()"
        raise UserError(f"{source}: has no x, the features of the nodes; {advice}")
    features = _features(values["x"], source)
    num_nodes, edges = len(features), fields.edges
    if edges.size and not 0 <= int(edges.min()) <= int(edges.max()) < num_nodes:
        outside = int(edges.min()) if edges.min() < 0 else int(edges.max())
        rule = f"x has {num_nodes} rows, so that nodes are 0..{num_nodes - 1}"
        raise UserError(f"{source}: edge_index holds the node {outside}; {rule}")
    indptr, indices = undirected_csr(edges[0], edges[1], num_nodes)
    unknown, unused = np.full(num_nodes, -1, np.int64), np.full(num_nodes, UNUSED, np.int8)
    return Graph(indptr, indices, features, unknown, unused, num_classes=0), values


def _features(x: Array, source: str) -> Array:
    """[N, F] float32 or float16."""
    if x.ndim != 2 or 0 in x.shape or x.dtype.kind not in "fiub":
        raise UserError(f"{source}: x must hold numbers in the shape [nodes, features], not {x.dtype}{list(x.shape)}")
    with np.errstate(over="ignore"):  # what becomes infinite is found when the graph is validated
        features: Array = np.ascontiguousarray(x, x.dtype if x.dtype in (np.float16, np.float32) else np.float32)
    return features


def _labels(y: Array, num_nodes: int, source: str) -> tuple[Array, Array]:
    """([N] int64 with -1 where unknown, or [N, C] float32 of 0 and 1; [N] mask of the nodes with known labels)."""
    y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    if y.ndim not in (1, 2) or len(y) != num_nodes or y.dtype.kind not in "fiub":
        actual = f"{y.dtype}{list(y.shape)}"
        raise UserError(
            f"{source}: y must have a row for each of the {num_nodes} nodes of x, [N] or [N, C], not {actual}"
        )
    numbers = y.astype(np.float64)
    missing = np.isnan(numbers) | (numbers < 0)
    if y.ndim == 2:
        known: Array = ~np.all(missing, axis=1)
        wrong = np.argwhere(known[:, None] & ~np.isin(numbers, (0, 1)))
        if len(wrong):
            row, column = wrong[0]
            raise UserError(f"{source}: y of node {row}, label {column} is {y[row, column]}; it must be 0 or 1")
        return np.where(known[:, None], numbers, 0).astype(np.float32), known
    known = ~missing
    _require_classes(numbers, known, source)
    return np.where(known, numbers, -1).astype(np.int64), known


def _require_classes(numbers: Array, known: Array, source: str) -> None:
    fractions = np.flatnonzero(known & (numbers != np.floor(numbers)))
    if len(fractions):
        node, rule = int(fractions[0]), "a class is a whole number, not a measurement"
        raise UserError(f"{source}: y of node {node} is {numbers[node]}: {rule}")
    classes = np.unique(numbers[known])
    if len(classes) < 2:
        raise UserError(f"{source}: y has {len(classes)} class(es); it needs at least 2")
    if classes[-1] >= len(numbers):
        rule = f"classes are numbered from 0, and there are {len(numbers)} nodes; a negative number is an unknown label"
        raise UserError(f"{source}: y holds {int(classes[-1])}: {rule}")


def _split(masks: dict[str, Array], known: Array, config: ObjectConfig) -> Array:
    """[N] int8 from the masks; where there are none, drawn by fractions from the labelled nodes."""
    source, num_nodes = config.described, len(known)
    if not masks:
        rng = np.random.default_rng(np.random.SeedSequence(config.seed))
        return split_by_fractions(np.flatnonzero(known), num_nodes, config, rng)
    if "train" not in masks:
        raise UserError(f"{source}: has a {next(iter(masks))}_mask and no train_mask; add it, or remove all masks")
    chosen = {name: _mask(name, mask, num_nodes, config) for name, mask in masks.items()}
    split = split_from_masks(chosen, num_nodes, lambda node: f"{source}: node {node}")
    unlabelled = np.flatnonzero((split != UNUSED) & ~known)
    if len(unlabelled):
        node = int(unlabelled[0])
        raise UserError(f"{source}: node {node} is in {split_name(split[node])}_mask, but y has no label for it")
    return split


def _mask(name: str, mask: Array, num_nodes: int, config: ObjectConfig) -> Array:
    """[N] bool, from [N] or from the column dataset.split of [N, splits]."""
    if mask.ndim == 2 and len(mask) == num_nodes:
        if config.split >= mask.shape[1]:
            rule = f"{name}_mask has {mask.shape[1]} splits, 0 to {mask.shape[1] - 1}"
            raise UserError(f"dataset.split={config.split}: {rule}")
        mask = mask[:, config.split]
    if mask.shape != (num_nodes,) or not np.isin(mask, (0, 1)).all():
        actual = f"{mask.dtype}{list(mask.shape)}"
        raise UserError(
            f"{config.described}: {name}_mask must hold true or false for each of {num_nodes} nodes, not {actual}"
        )
    return mask.astype(bool)
