"""How a store keeps the whole graph: the type of its features, and the order of its nodes (partition.order)."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from llcg_dist.config.partition import FeaturesDtype, PartitionConfig
from llcg_dist.data.array_writer import ArrayWriter
from llcg_dist.data.atomic_files import save_array
from llcg_dist.data.csr import Topology, row_positions
from llcg_dist.data.graph import Graph
from llcg_dist.data.rows import ENTRIES_PER_CHUNK, Array, first_nonfinite, row_ranges, select_rows
from llcg_dist.data.store import read_shard, write_shard
from llcg_dist.errors import UserError


def with_features_of_type(graph: Graph, config: PartitionConfig, folder: Path) -> Graph:
    """The graph with features of partition.features_dtype, which are mapped from a file of the folder if they change;
    raises UserError for a number that is too large."""
    if config.features_dtype == FeaturesDtype.given or graph.features.dtype == np.float16:
        return graph
    path = folder / "features.npy"
    with np.errstate(over="ignore"):
        save_array(path, graph.features, np.float16)
    features: Array = np.load(path, mmap_mode="r")
    if too_large := first_nonfinite(features):
        node, column = too_large
        largest = f"{np.finfo(np.float16).max:,.0f}"
        what = f"column {column} of node {node} is {graph.features[too_large]:g}, float16 ends at {largest}"
        raise UserError(f"partition.features_dtype=float16: {what}; scale the features, or leave it out")
    return replace(graph, features=features)


def order_by_parts(folder: Path, assignment: Array, store_id: str) -> tuple[dict[str, Any], Array]:
    """Rewrites the whole graph of a store so that the nodes of a part stand together, in the order that they had.

    (content of graph.json, the part of every node in the new order.) The array `order` holds the number that each node
    had; where nodes have no names, these numbers become their names.
    """
    graph = read_shard(folder).graph
    order = np.argsort(assignment, kind="stable").astype(graph.indices.dtype)
    topology = _reordered(graph, order, folder)
    names = dict(graph.names)
    names["node"] = select_rows(names["node"], order) if "node" in names else order
    ordered = replace(
        graph,
        indptr=topology.indptr,
        indices=topology.indices,
        features=select_rows(graph.features, order),
        labels=select_rows(graph.labels, order),
        split=select_rows(graph.split, order),
        names=names,
    )
    parts = assignment[order]
    return write_shard(folder, ordered, store_id, assignment=parts, order=order), parts


def given_rows(order: Array) -> Array:
    """[N] the row of every node in a store whose array `order` this is."""
    rows = np.empty(len(order), order.dtype)
    rows[order] = np.arange(len(order), dtype=order.dtype)
    return rows


def _reordered(graph: Graph, order: Array, folder: Path) -> Topology:
    """The topology in the new order; its indices are mapped from indices.npy of the folder, which is replaced."""
    degrees = np.diff(graph.indptr)[order]
    indptr = np.zeros(len(order) + 1, graph.indptr.dtype)
    np.cumsum(degrees, out=indptr[1:])
    writer = ArrayWriter(folder / "indices.npy", graph.indices.dtype)
    for columns in _rows_in_order(graph, order, indptr):
        writer.append(columns)
    return Topology(indptr, writer.finish())


def _rows_in_order(graph: Graph, order: Array, indptr: Array) -> Iterator[Array]:
    """The neighbours of some nodes after the other, renumbered and sorted."""
    new_id, num_nodes = given_rows(order), len(order)
    for first, last in row_ranges(indptr, ENTRIES_PER_CHUNK):
        positions, _ = row_positions(graph.indptr, order[first:last])
        lengths = np.diff(indptr[first : last + 1])
        keys = np.repeat(np.arange(last - first, dtype=np.int64) * num_nodes, lengths)
        keys += new_id[graph.indices[positions]]
        keys.sort()
        yield keys % num_nodes
