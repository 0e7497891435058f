"""Labels of the user's own graph: one class per node (multiclass) or a 0/1 column per label (multi-label)."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from llcg_dist.data.datasets.nodes import NodeIds
from llcg_dist.data.datasets.tables import Table, as_integers, read_table
from llcg_dist.data.rows import Array
from llcg_dist.errors import UserError


@dataclass(frozen=True)
class Labels:
    """values: [N] int64 with -1 where unknown, or [N, C] float32 of 0 and 1; known: [N] mask; classes: [C] names."""

    values: Array
    known: Array
    classes: Array

    @property
    def task(self) -> str:
        return "multiclass" if self.values.ndim == 1 else "multilabel"


def read_labels(path: Path, nodes: NodeIds) -> Labels:
    """`node,label` has a class per node; `node` and two or more other columns of 0 and 1 have a label per column."""
    table = read_table(path, ["node"], text=[*nodes.text_columns(["node"]), "label"])
    columns = [column for column in table.columns if column != "node"]
    if "label" not in columns and len(columns) < 2:
        raise UserError(f"{path}: no column 'label'; it has {', '.join(map(repr, table.columns))}")
    if "label" in columns and len(columns) > 1:
        other = next(column for column in columns if column != "label")
        rule = "a column 'label' stands alone; multi-label files have a 0/1 column per label and none named 'label'"
        raise UserError(f"{path}: column {other!r} beside 'label': {rule}")
    order = nodes.row_of_each_node(table)
    return _multiclass(table, order) if "label" in columns else _multilabel(table, columns, order)


def _multiclass(table: Table, order: Array) -> Labels:
    """Labels from the column `label`, of numbers or names; an empty cell is an unknown label."""
    cells = table.frame["label"]
    known = cells.notna().to_numpy()
    numbers = as_integers(cells[known])
    fractions = np.flatnonzero(known & (pd.to_numeric(cells, errors="coerce") % 1 > 0).to_numpy())
    if len(fractions):
        row = fractions[0]
        rule = "a class is a name or a whole number, not a measurement"
        raise UserError(f"{table.location(row)}: column 'label' is {cells.iloc[row]}, out of range: {rule}")
    named = cells[known].astype(str).to_numpy(np.str_) if numbers is None else numbers
    classes, index = np.unique(named, return_inverse=True)
    if len(classes) < 2:
        raise UserError(f"{table.path}: column 'label' has {len(classes)} class(es); it needs at least 2")
    if numbers is not None:
        _require_consecutive(table, np.flatnonzero(known), numbers, classes)
    values = np.full(len(table), -1, np.int64)
    values[known] = index
    return Labels(values[order], known[order], classes)


def _require_consecutive(table: Table, rows: Array, numbers: Array, classes: Array) -> None:
    """Raises UserError unless numbered classes are 0..C-1 or 1..C, so that a stray -1 or 999 is not one more class."""
    first = 1 if classes[0] == 1 else 0
    outside = np.flatnonzero((numbers < first) | (numbers >= first + len(classes)))
    if len(outside):
        rule = f"{len(classes)} numbered classes must be {first}..{first + len(classes) - 1} without a gap"
        advice = "leave the cell empty where the label is unknown; other class names must be words"
        row = outside[0]
        raise UserError(
            f"{table.location(rows[row])}: column 'label' is {numbers[row]}, out of range: {rule}; {advice}"
        )


def _multilabel(table: Table, columns: list[str], order: Array) -> Labels:
    """Labels from 0/1 columns; a row of empty cells is a node without labels known."""
    empty = table.frame[columns].isna().to_numpy()
    known = ~empty.all(axis=1)
    values = np.zeros((len(table), len(columns)), np.float32)
    for i, column in enumerate(columns):
        cells = table.frame[column]
        numbers = pd.to_numeric(cells, errors="coerce").to_numpy(np.float64, na_value=np.nan)
        wrong = np.flatnonzero(known & ~np.isin(numbers, (0, 1)))
        if len(wrong):
            number = numbers[wrong[0]]
            text = "empty" if empty[wrong[0], i] else repr(str(cells.iloc[wrong[0]]))
            shown = text if np.isnan(number) else f"{number:g}"
            rule = "a multi-label column must be 0 or 1 (all columns empty where the labels are unknown)"
            raise UserError(f"{table.location(wrong[0])}: column {column!r} is {shown}, out of range: {rule}")
        values[known, i] = numbers[known]
    return Labels(values[order], known[order], np.array(columns, np.str_))
