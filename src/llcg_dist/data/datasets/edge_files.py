"""Edges of the user's own graph, read a piece at a time and sorted on disk."""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from llcg_dist.config.files import FilesConfig
from llcg_dist.data.csr import Topology
from llcg_dist.data.datasets.nodes import NodeIds
from llcg_dist.data.datasets.tables import Table, is_npy, num_rows, read_npy, read_pieces
from llcg_dist.data.external_csr import ExternalCsr
from llcg_dist.data.rows import Array
from llcg_dist.data.workspace import Workspace
from llcg_dist.errors import UserError

_BYTES_OF_EDGE = 256
"""Memory for an edge while its ids are looked up; text needs most of it."""

Ends = tuple[Array, Array]
"""Nodes at the two ends of some edges."""


def read_edges(path: Path, config: FilesConfig, nodes: NodeIds, workspace: Workspace) -> Topology:
    """The undirected graph, mapped from files of the workspace."""
    edges_at_once = max(1, workspace.memory // _BYTES_OF_EDGE)
    if is_npy(path):
        edges = _edge_array(path)
        count, pieces = edges.shape[1], _from_npy(path, edges, nodes, edges_at_once)
    else:
        count, pieces = num_rows(path), _from_table(path, config, nodes, edges_at_once)
    csr = ExternalCsr(workspace, len(nodes), count)
    progress = workspace.progress(f"reading {path}", count, "edges")
    for src, dst in pieces:
        csr.add(src, dst)
        progress.add(len(src))
    return csr.finish()


def _edge_array(path: Path) -> Array:
    edges = read_npy(path)
    if edges.ndim != 2 or len(edges) != 2 or edges.dtype.kind not in "iu":
        actual = f"{edges.dtype}{list(edges.shape)}"
        turned = "; save its transpose" if edges.ndim == 2 and edges.shape[1] == 2 else ""
        raise UserError(f"{path}: must hold whole numbers in the shape [2, edges], not {actual}{turned}")
    return edges


def _from_npy(path: Path, edges: Array, nodes: NodeIds, edges_at_once: int) -> Iterator[Ends]:
    for start in range(0, edges.shape[1], edges_at_once):

        def location(position: int, start: int = start) -> str:
            return f"{path}: column {start + position}: node"

        src, dst = (nodes.index_of(pd.Series(row[start : start + edges_at_once]), location) for row in edges)
        yield src, dst


def _from_table(path: Path, config: FilesConfig, nodes: NodeIds, edges_at_once: int) -> Iterator[Ends]:
    columns = [config.columns.src, config.columns.dst]
    text = nodes.text_columns(columns)
    for table in read_pieces(path, config, ["src", "dst"], text, only_roles=True, cells=2 * edges_at_once):
        _require_no_weights(table)
        src, dst = (nodes.index_of_column(table, column) for column in columns)
        yield src, dst


def _require_no_weights(table: Table) -> None:
    """Raises UserError for a further column of numbers beside the ends of the edges: no model here would use it."""
    if table.unread_numbers:
        name = table.unread_numbers[0]
        rule = f"edges have no weights here, all count alike; to train without it: dataset.columns.ignore=[{name}]"
        raise UserError(f"{table.path}: column {name!r} holds numbers: {rule}")
