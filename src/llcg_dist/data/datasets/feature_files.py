"""Features of the user's own graph, and the ids of its nodes: a row for every node, read a piece at a time."""

import re
from pathlib import Path

import numpy as np
import pandas as pd

from llcg_dist.config.files import FilesConfig
from llcg_dist.data.array_writer import ArrayWriter
from llcg_dist.data.datasets.nodes import NodeIds
from llcg_dist.data.datasets.tables import Table, is_npy, num_rows, read_npy, read_pieces
from llcg_dist.data.rows import Array, first_nonfinite, row_slices
from llcg_dist.data.workspace import Workspace
from llcg_dist.errors import UserError

_BYTES_OF_CELL = 32
"""Memory for a cell of a table while it is converted; most of it is what Parquet and pandas hold."""


def read_features(path: Path, config: FilesConfig, workspace: Workspace) -> tuple[NodeIds, Array, Array | None]:
    """(ids, [N, F] float32 or float16, names of the columns). An .npy file of such floats is mapped where it is, others
    are converted into the workspace."""
    if is_npy(path):
        values = _from_npy(path, workspace)
        return NodeIds.numbered(path, len(values)), values, None
    return _from_table(path, config, workspace)


def _from_npy(path: Path, workspace: Workspace) -> Array:
    values = read_npy(path)
    if values.ndim != 2 or 0 in values.shape:
        raise UserError(f"{path}: must have shape [nodes, features], not {list(values.shape)}")
    if values.dtype not in (np.float32, np.float16):
        writer = ArrayWriter(workspace.folder / "features.npy", np.float32, values.shape[1:])
        with np.errstate(over="ignore"):
            for rows in row_slices(values):
                writer.append(values[rows])
        values = writer.finish()
    nonfinite = first_nonfinite(values)
    if nonfinite:
        place = "row {}, column {}".format(*nonfinite)
        raise UserError(f"{path}: {place} is {values[nonfinite]}; it must be a finite number")
    return values


def _from_table(path: Path, config: FilesConfig, workspace: Workspace) -> tuple[NodeIds, Array, Array]:
    node = config.columns.node
    progress = workspace.progress(f"reading {path}", num_rows(path), "nodes")
    columns: list[str] = []
    ids, writer = [], None
    for table in read_pieces(path, config, ["node"], text=[node], cells=workspace.memory // _BYTES_OF_CELL):
        if writer is None:
            columns = _feature_columns(table, node)
            writer = ArrayWriter(workspace.folder / "features.npy", np.float32, (len(columns),))
        features = np.empty((len(table), len(columns)), np.float32)
        for i, column in enumerate(columns):
            features[:, i] = table.numbers(column)
        writer.append(features)
        ids.append(table.frame[[node]])
        progress.add(len(table))
    assert writer is not None  # there is at least one piece
    all_ids = Table(path, pd.concat(ids, ignore_index=True), config.columns)
    return NodeIds.named(all_ids), writer.finish(), np.array(columns, np.str_)


def _feature_columns(table: Table, node: str) -> list[str]:
    columns = [column for column in table.columns if column != node]
    if not columns or len(table) == 0:
        what = "row" if columns else f"column besides {node}"
        raise UserError(f"{table.path}: has no {what}; a node needs features")
    for column in columns:
        _require_feature(table, column)
    return columns


def _require_feature(table: Table, column: str) -> None:
    """Raises UserError for a column that pandas reads as numbers though they measure nothing: an index, a date."""
    ignore = f"leave it out with dataset.columns.ignore=['{column}']"
    if re.fullmatch(r"Unnamed: \d+", column):
        rule = "is an index that has no name (written with pandas? use index=False)"
        raise UserError(f"{table.path}: column {column!r} {rule}; or {ignore}")
    if table.frame[column].dtype.kind in "mM":
        raise UserError(f"{table.path}: column {column!r} holds dates or times, not numbers; convert it, or {ignore}")
