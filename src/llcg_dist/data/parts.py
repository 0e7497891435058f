"""The part of every node: METIS, streaming, at random, METIS clusters spread over the parts, or as a file says."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from llcg_dist import seeding
from llcg_dist.config.files import FilesConfig
from llcg_dist.config.partition import PartitionBackend, PartitionConfig, PartitionMethod
from llcg_dist.data.balance import node_types, spread_clusters
from llcg_dist.data.csr import Topology
from llcg_dist.data.graph import Graph
from llcg_dist.data.host_memory import memory
from llcg_dist.data.metis import choose_metis
from llcg_dist.data.rows import Array
from llcg_dist.data.stream import stream_parts
from llcg_dist.errors import UserError

_SHARE_OF_FREE_MEMORY = 0.75
"""METIS may need so much of it: other processes need memory, too."""


def metis_fits(num_entries: int, backend: PartitionBackend = PartitionBackend.auto) -> bool:
    """Whether the free memory of this host is enough for METIS of this library."""
    return choose_metis(backend).memory(num_entries) <= _SHARE_OF_FREE_MEMORY * memory()[1]


def settle_method(config: PartitionConfig, num_entries: int, say: Callable[[str], None]) -> PartitionConfig:
    """The settings with METIS or stream in place of `auto`, for a topology of so many entries."""
    if config.method != PartitionMethod.auto:
        return config
    needed, free = choose_metis(config.backend).memory(num_entries), memory()[1]
    fits = metis_fits(num_entries, config.backend)
    method = PartitionMethod.metis if fits else PartitionMethod.stream
    say(f"partition=auto: {method}; METIS needs about {needed / 1e9:.1f} GB, {free / 1e9:.1f} GB are free")
    backend = config.backend if fits else PartitionBackend.auto
    return replace(config, method=method, backend=backend)


def assign_parts(
    graph: Graph,
    num_parts: int,
    config: PartitionConfig,
    scratch: Path | None = None,
    tables: FilesConfig | None = None,
) -> Array:
    """[N] int32: the part of every node; deterministic for a graph, a method (other than auto), a backend and a seed.

    METIS needs disk space for about four times the topology, in `scratch` or in the system's temporary folder.
    `tables`: how the user's tables are written, partition.file among them.
    """
    if config.method == PartitionMethod.given:
        return read_parts(Path(str(config.file)), graph, num_parts, tables or FilesConfig())
    if num_parts == 1:  # METIS dies of SIGFPE on one part
        return np.zeros(graph.num_nodes, np.int32)
    rng = seeding.partition_generator(config.seed)
    if config.method == PartitionMethod.random:
        return rng.permutation(np.arange(graph.num_nodes) % num_parts).astype(np.int32)
    types = node_types(graph, config.balances)
    if config.method == PartitionMethod.stream:
        return stream_parts(Topology(graph.indptr, graph.indices), num_parts, config.seed, types, scratch)
    metis = choose_metis(config.backend)
    if config.method == PartitionMethod.metis:
        return metis.parts(graph, num_parts, config.seed, types, scratch)
    num_clusters = num_parts * config.clusters
    if num_clusters > graph.num_nodes:
        rule = f"{num_parts} parts of so many clusters are more than the graph's {graph.num_nodes} nodes"
        raise UserError(f"partition.clusters={config.clusters}: {rule}")
    clusters = metis.parts(graph, num_clusters, config.seed, None, scratch)
    return spread_clusters(clusters, num_parts, types, rng)


def read_parts(path: Path, graph: Graph, num_parts: int, tables: FilesConfig) -> Array:
    """[N] int32: the parts of partition.file."""
    parts = _from_npy(path, graph) if path.suffix == ".npy" else _from_table(path, graph, tables)
    outside = np.flatnonzero((parts < 0) | (parts >= num_parts))
    if len(outside):
        node = outside[0]
        name = graph.names["node"][node] if "node" in graph.names else node
        rule = f"must be one of 0 to {num_parts - 1} with cluster.num_machines={num_parts}"
        raise UserError(f"{path}: node {name} is in part {parts[node]}: {rule}")
    return parts.astype(np.int32)


# Tables need pandas, which takes a sixth of a rank's memory: imported where a file is read, and by no rank.


def _from_npy(path: Path, graph: Graph) -> Array:
    from llcg_dist.data.datasets.tables import read_npy

    parts = read_npy(path)
    if parts.shape != (graph.num_nodes,) or parts.dtype.kind not in "iu":
        actual = f"{parts.dtype}{list(parts.shape)}"
        raise UserError(f"{path}: must hold a whole number for each of the {graph.num_nodes} nodes, not {actual}")
    return parts


def _from_table(path: Path, graph: Graph, tables: FilesConfig) -> Array:
    import pandas as pd

    from llcg_dist.data.datasets.nodes import NodeIds
    from llcg_dist.data.datasets.tables import as_integers, read_table

    names = graph.names.get("node")
    nodes = NodeIds(Path("the graph"), pd.RangeIndex(graph.num_nodes) if names is None else pd.Index(names))
    table = read_table(path, tables, ["node", "part"], text=nodes.text_columns([tables.columns.node]))
    rows = nodes.row_of_each_node(table, needed=np.ones(graph.num_nodes, bool))
    column = tables.columns.part
    table.require_no_empty(column)
    parts = as_integers(table.frame[column])
    if parts is None:
        raise UserError(f"{path}: column {column!r} must hold whole numbers, the first part is 0")
    return parts[rows]
