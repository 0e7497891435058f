"""Labels of the user's own graph: one class per node (multiclass) or a 0/1 column per label (multi-label)."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from llcg_dist.config.files import FilesConfig
from llcg_dist.data.datasets.csv_files import missing_column
from llcg_dist.data.datasets.nodes import NodeIds
from llcg_dist.data.datasets.tables import Table, as_integers, is_npy, read_npy, read_table
from llcg_dist.data.rows import Array
from llcg_dist.errors import UserError

log = logging.getLogger(__name__)

_WORDS_FOR_MISSING = ("na", "n/a", "nan", "null")


@dataclass(frozen=True)
class Labels:
    """values: [N] int64 with -1 where unknown, or [N, C] float32 of 0 and 1; known: [N] mask; classes: [C] names."""

    values: Array
    known: Array
    classes: Array

    @property
    def task(self) -> str:
        return "multiclass" if self.values.ndim == 1 else "multilabel"


def read_labels(path: Path, config: FilesConfig, nodes: NodeIds, classes: Array | None = None) -> Labels:
    """`node,label` has a class per node; `node` and two or more other columns of 0 and 1 have a label per column.

    A node without a row has no known label. In an .npy file row i is node i. `classes`: the names that a model knows;
    without, those in the file are all there are.
    """
    if is_npy(path):
        return read_npy_labels(path, nodes, classes)
    node, label = config.columns.node, config.columns.label
    table = read_table(path, config, ["node"], text=[*nodes.text_columns([node]), label])
    columns = [column for column in table.columns if column != node]
    if label not in columns and len(columns) < 2:
        raise UserError(missing_column(path, config, "label", table.columns))
    if label in columns and len(columns) > 1:
        other = next(column for column in columns if column != label)
        rule = f"a column {label!r} stands alone; leave others out with dataset.columns.ignore=[{other}]"
        several = f"multi-label files have a 0/1 column per label and none named {label!r}"
        raise UserError(f"{path}: column {other!r} beside {label!r}: {rule}; {several}")
    if len(table) == 0:
        raise UserError(f"{path}: has no row; some nodes need labels")
    order = nodes.row_of_each_node(table)
    if label in columns:
        return _multiclass(table, label, order, classes)
    if classes is not None:
        if sorted(columns) != sorted(map(str, classes)):
            has, needs = (", ".join(map(repr, names[:8])) for names in (columns, [str(name) for name in classes]))
            raise UserError(f"{path}: has the labels {has}; the model was trained with {needs}")
        columns = [str(name) for name in classes]
    return _multilabel(table, columns, order)


def _multiclass(table: Table, label: str, order: Array, known_classes: Array | None) -> Labels:
    """Labels from the column of classes, of numbers or names; an empty cell is an unknown label."""
    cells = table.frame[label]
    known = cells.notna().to_numpy()
    numbers = as_integers(cells[known])
    fractions = np.flatnonzero(known & (pd.to_numeric(cells, errors="coerce") % 1 > 0).to_numpy())
    if len(fractions):
        row = fractions[0]
        rule = "a class is a name or a whole number, not a measurement"
        raise UserError(f"{table.location(row)}: column {label!r} is {cells.iloc[row]}, out of range: {rule}")
    named = cells[known].astype(str).to_numpy(np.str_) if numbers is None else numbers
    rows = np.flatnonzero(known)
    source = f"{table.path}: column {label!r}"
    values, classes = class_numbers(named, source, lambda i: cell_of(table, label, rows[i]), known_classes)
    of_rows = np.full(len(table), -1, np.int64)
    of_rows[known] = values
    return Labels(_of_nodes(of_rows, order, -1), _of_nodes(known, order, False), classes)


def cell_of(table: Table, column: str, row: int) -> str:
    return f"{table.location(row)}: column {column!r}"


def class_numbers(
    named: Array, source: str, location: Callable[[int], str], known_classes: Array | None = None
) -> tuple[Array, Array]:
    """([n] numbers 0..C-1, [C] names) of classes given as names or whole numbers; `location` says where each stands."""
    if known_classes is not None:
        return _numbers_among(named, known_classes, location), known_classes
    classes, index = np.unique(named, return_inverse=True)
    if len(classes) < 2:
        raise UserError(f"{source} has {len(classes)} class(es); it needs at least 2")
    _warn_of_doubtful_names(classes.astype(str).tolist(), source)
    if named.dtype.kind != "U":
        _require_consecutive(named, classes, location)
    return index, classes


def _warn_of_doubtful_names(classes: list[str], source: str) -> None:
    """Two spellings of a name are two classes, and a word for nothing is a class: hardly what is meant."""
    spellings = dict[str, str]()
    for name in classes:
        plain = " ".join(name.split()).casefold()
        if plain in _WORDS_FOR_MISSING:
            rule = "is one of the classes; leave the cell empty where the label is unknown"
            log.warning("%s: %r %s", source, name, rule)
        if (other := spellings.setdefault(plain, name)) != name:
            rule = "are two classes, and differ in spaces or capitals alone; make them one if they are"
            log.warning("%s: %r and %r %s", source, other, name, rule)


def _numbers_among(named: Array, classes: Array, location: Callable[[int], str]) -> Array:
    """[n] numbers of classes that a model knows; UserError for any other."""
    numbers = {str(name): number for number, name in enumerate(classes)}
    found = np.array([numbers.get(str(name), -1) for name in named], np.int64)
    if len(unknown := np.flatnonzero(found < 0)):
        names = ", ".join(map(str, classes[:8])) + (", …" if len(classes) > 8 else "")
        raise UserError(f"{location(unknown[0])} is {named[unknown[0]]}, no class of the model: it knows {names}")
    return found


def _require_consecutive(numbers: Array, classes: Array, location: Callable[[int], str]) -> None:
    """Raises UserError unless numbered classes are 0..C-1 or 1..C, so that a stray -1 or 999 is not one more class."""
    first = 1 if classes[0] == 1 else 0
    outside = np.flatnonzero((numbers < first) | (numbers >= first + len(classes)))
    if len(outside):
        rule = f"{len(classes)} numbered classes must be {first}..{first + len(classes) - 1} without a gap"
        advice = "leave the cell empty where the label is unknown; other class names must be words"
        raise UserError(f"{location(outside[0])} is {numbers[outside[0]]}, out of range: {rule}; {advice}")


def _of_nodes(of_rows: Array, order: Array, missing: float) -> Array:
    """The rows in the order of the nodes; `missing` for a node without one."""
    of_nodes = of_rows[order]
    of_nodes[order < 0] = missing
    return of_nodes


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
    names = np.array(columns, np.str_)
    return Labels(_of_nodes(values, order, 0), _of_nodes(known, order, False), names)


def read_npy_labels(path: Path, nodes: NodeIds, classes: Array | None) -> Labels:
    """[N] classes as numbers (-1 or NaN: unknown) or as text (empty: unknown), or [N, C] of 0 and 1, one per label."""
    values = read_npy(path, "fiubU")
    nodes.require_row_of_each(path, values)
    values = np.asarray(values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values)
    if values.ndim == 1:
        return _npy_multiclass(path, values, classes)
    if values.ndim != 2 or values.dtype.kind == "U":
        raise UserError(f"{path}: must hold a class per node, [N], or a 0 or 1 per node and label, [N, C]")
    if classes is not None and values.shape[1] != len(classes):
        raise UserError(f"{path}: has {values.shape[1]} labels a node; the model was trained with {len(classes)}")
    known: Array = ~np.all(np.isnan(values.astype(np.float64)), axis=1)
    wrong = np.argwhere(known[:, None] & ~np.isin(values, (0, 1)))
    if len(wrong):
        row, column = wrong[0]
        raise UserError(f"{path}: row {row}, column {column} is {values[row, column]}, out of range: must be 0 or 1")
    return Labels(np.where(known[:, None], values, 0).astype(np.float32), known, np.arange(values.shape[1]))


def _npy_multiclass(path: Path, values: Array, known_classes: Array | None) -> Labels:
    if values.dtype.kind == "U":
        known, named = values != "", values
    else:
        numbers = values.astype(np.float64)
        known = ~np.isnan(numbers) & (numbers != -1)
        fractions = np.flatnonzero(known & (numbers != np.floor(numbers)))
        if len(fractions):
            rule = "a class is a whole number, not a measurement"
            raise UserError(f"{path}: row {fractions[0]} is {numbers[fractions[0]]}, out of range: {rule}")
        named = np.where(known, numbers, 0).astype(np.int64)
    rows = np.flatnonzero(known)
    index, classes = class_numbers(named[known], f"{path}", lambda i: f"{path}: row {rows[i]}", known_classes)
    labels = np.full(len(values), -1, np.int64)
    labels[known] = index
    return Labels(labels, known, classes)
