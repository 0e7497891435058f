"""The split of the user's own graph: a table, an .npy file, or a mask per set."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from llcg_dist.config.files import FilesConfig
from llcg_dist.data.datasets.csv_files import missing_column
from llcg_dist.data.datasets.labels import Labels
from llcg_dist.data.datasets.nodes import NodeIds
from llcg_dist.data.datasets.splits import SPLITS, Location, split_from_masks, split_name
from llcg_dist.data.datasets.tables import Table, is_npy, read_npy, read_table
from llcg_dist.data.graph import TEST, TRAIN, UNUSED, VAL
from llcg_dist.data.rows import Array
from llcg_dist.errors import UserError

_NPY_NUMBERS = {0: TRAIN, 1: VAL, 2: TEST, -1: UNUSED}


def read_split(config: FilesConfig, nodes: NodeIds, labels: Labels) -> Array:
    """[N] int8 from dataset.split or the masks. Nodes of a split must have a label."""
    if config.split is None:
        split, location = _from_masks(config.masks, nodes)
    elif is_npy(Path(config.split)):
        split, location = _from_npy(Path(config.split), nodes)
    else:
        split, location = _from_table(Path(config.split), config, nodes, labels)
    unlabelled = np.flatnonzero((split != UNUSED) & ~labels.known)
    if len(unlabelled):
        node = int(unlabelled[0])
        raise UserError(
            f"{location(node)}: in {split_name(split[node])}, but {config.labels} has no label for this node"
        )
    return split


def _from_table(path: Path, config: FilesConfig, nodes: NodeIds, labels: Labels) -> tuple[Array, Location]:
    """The column `split`, or the columns train, val and test of true and false; an empty cell is UNUSED.

    A node without a label needs no row; any other does, so that a file which was cut off is noticed.
    """
    node, column = config.columns.node, config.columns.split
    table = read_table(path, config, ["node"], text=[*nodes.text_columns([node]), column, *SPLITS])
    if column in table.columns:
        names = table.frame[column]
        wrong = np.flatnonzero((names.notna() & ~names.isin(list(SPLITS))).to_numpy())
        if len(wrong):
            rule = f"must be one of {', '.join(SPLITS)}, or empty for a node that is in none"
            raise UserError(f"{table.location(wrong[0])}: column {column!r} is {str(names.iloc[wrong[0]])!r}; {rule}")
        of_rows = names.map(SPLITS).fillna(UNUSED).to_numpy(np.int8)
    elif set(SPLITS) <= set(table.columns):
        masks = {name: _mask_column(table, name) for name in SPLITS}
        of_rows = split_from_masks(masks, len(table), table.location)
    else:
        raise UserError(missing_column(path, config, "split", table.columns))

    def overlap(first: int, second: int) -> str:
        in_both = [split_name(of_rows[row]) if of_rows[row] != UNUSED else "none" for row in (first, second)]
        return f"in {in_both[0]} and in {in_both[1]}: splits must not overlap"

    order = nodes.row_of_each_node(table, labels.known, overlap)
    split = np.where(order < 0, UNUSED, of_rows[order]).astype(np.int8) if len(table) else np.zeros(len(nodes), np.int8)
    return split, lambda node: table.location(order[node])


def _mask_column(table: Table, name: str) -> Array:
    """[rows] bool of a column of true and false, or 1 and 0; an empty cell is false."""
    cells = table.frame[name].fillna("false").astype(str).str.lower()
    wrong = np.flatnonzero(~cells.isin(["true", "false", "1", "0"]).to_numpy())
    if len(wrong):
        shown = str(table.frame[name].iloc[wrong[0]])
        raise UserError(
            f"{table.location(wrong[0])}: column {name!r} is {shown!r}; it must be true or false, or 1 or 0"
        )
    return cells.isin(["true", "1"]).to_numpy()


def _from_npy(path: Path, nodes: NodeIds) -> tuple[Array, Location]:
    """[N] of 0 (train), 1 (val), 2 (test) and -1 (none), or of these words; or [N, 3] masks of train, val and test."""
    values = read_npy(path, "iubU")
    nodes.require_row_of_each(path, values)

    def location(node: int) -> str:
        return f"{path}: row {node}"

    if values.ndim == 2 and values.shape[1] == len(SPLITS) and values.dtype.kind != "U":
        masks = {name: _mask(path, values[:, i]) for i, name in enumerate(SPLITS)}
        return split_from_masks(masks, len(nodes), location), location
    known: dict[Any, int] = {**SPLITS, "": UNUSED} if values.dtype.kind == "U" else _NPY_NUMBERS
    if values.ndim != 1 or values.dtype.kind == "b":
        rule = "a split is [N] of 0, 1, 2 or train, val, test, or [N, 3] masks; one mask alone: dataset.train_mask"
        raise UserError(f"{path}: holds {values.dtype}{list(values.shape)}; {rule}")
    wrong = np.flatnonzero(~np.isin(values, list(known)))
    if len(wrong):
        rule = "must be train, val, test or empty" if values.dtype.kind == "U" else "must be 0, 1, 2 or -1"
        raise UserError(f"{location(wrong[0])} is {str(values[wrong[0]])!r}; it {rule} (train, val, test, none)")
    return np.array([known[value] for value in values.tolist()], np.int8), location


def _from_masks(files: Mapping[str, str], nodes: NodeIds) -> tuple[Array, Location]:
    """dataset.train_mask, val_mask and test_mask; without test_mask nothing is tested."""
    masks = {}
    for name, file in files.items():
        if not is_npy(Path(file)):
            raise UserError(f"dataset.{name}_mask={file}: must be an .npy file; tables go to dataset.split")
        values = read_npy(Path(file))
        nodes.require_row_of_each(Path(file), values)
        masks[name] = _mask(Path(file), values)

    def location(node: int) -> str:
        file = next(file for name, file in files.items() if masks[name][node])
        return f"{file}: row {node}"

    return split_from_masks(masks, len(nodes), location), location


def _mask(path: Path, values: Array) -> Array:
    """[N] bool from true and false, or 1 and 0."""
    if values.ndim != 1 or not np.isin(values, (0, 1)).all():
        raise UserError(
            f"{path}: must hold true or false (or 1 or 0) for each node, not {values.dtype}{list(values.shape)}"
        )
    return np.asarray(values, bool)
