"""A user's node ids <-> 0..N-1."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from pandas.api.types import is_integer_dtype, is_numeric_dtype

from llcg_dist.data.datasets.tables import Table, whole_numbers
from llcg_dist.data.rows import Array
from llcg_dist.errors import UserError


class NodeIds:
    """Ids are whole numbers, or text; nodes are numbered in the order of the file that has their features."""

    def __init__(self, path: Path, ids: pd.Index) -> None:
        self._path, self._ids = path, ids
        self._are_numbers = is_integer_dtype(ids)

    @classmethod
    def numbered(cls, path: Path, num_nodes: int) -> "NodeIds":
        """Ids are the rows of an .npy file: 0..N-1."""
        return cls(path, pd.RangeIndex(num_nodes))

    @classmethod
    def named(cls, table: Table) -> "NodeIds":
        """Ids are the column `node`, each once; numbers only where that keeps them as written (007 is text)."""
        table.require_no_empty("node")
        cells = table.frame["node"]
        numbers = whole_numbers(cells)
        as_written = numbers is not None and (is_numeric_dtype(cells) or bool((cells == numbers.astype(str)).all()))
        ids = pd.Index(numbers if as_written else cells.astype(str))
        _require_once(table, ids.to_series())
        return cls(table.path, ids)

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def names(self) -> Array | None:
        """[N] numbers or fixed-width text, or None where the ids are 0..N-1 anyway."""
        if isinstance(self._ids, pd.RangeIndex):
            return None
        return self._ids.to_numpy(np.int64 if self._are_numbers else np.str_)

    def text_columns(self, columns: Sequence[str]) -> list[str]:
        """Of columns with ids, those that must be read as they are written."""
        return [] if self._are_numbers else list(columns)

    def in_column(self, table: Table, column: str) -> Array:
        """[rows] int64: the node of each cell; raises for the first that is none."""
        table.require_no_empty(column)
        return self.find(table.frame[column], lambda row: f"{table.place(row)}: {column}")

    def find(self, cells: pd.Series, place: Callable[[int], str]) -> Array:
        """[n] int64: the node of each id; raises for the first that is none, with its place."""
        wanted = pd.to_numeric(cells, errors="coerce") if self._are_numbers else cells.astype(str)
        found = self._ids.get_indexer(pd.Index(wanted))
        unknown = np.flatnonzero(found < 0)
        if len(unknown):
            raise UserError(f"{place(unknown[0])} {str(cells.iloc[unknown[0]])!r} is not a node of {self._path}")
        return found

    def every_node_once(self, table: Table, else_: Callable[[int, int], str] | None = None) -> Array:
        """[N] int64: the row of each node; raises where a node has no row, or two (`else_` may say what that means)."""
        found = self.in_column(table, "node")
        _require_once(table, pd.Series(found), else_)
        if len(table) < len(self):
            row_of_node = np.bincount(found, minlength=len(self))
            missing = str(self._ids[int(np.argmin(row_of_node))])
            rule = f"every node needs a row, with an empty cell where it is unknown; {missing!r} has none"
            raise UserError(f"{table.path}: {len(table)} rows for the {len(self)} nodes of {self._path}: {rule}")
        order = np.empty(len(self), np.int64)
        order[found] = np.arange(len(found))
        return order


def _require_once(table: Table, ids: pd.Series, else_: Callable[[int, int], str] | None = None) -> None:
    again = np.flatnonzero(ids.duplicated())
    if len(again):
        row = int(again[0])
        first = int(np.argmax(ids.to_numpy() == ids.iloc[row]))
        before = table.place(first).removeprefix(f"{table.path}: ")
        reason = else_(first, row) if else_ else "a node must have one row"
        node = str(table.frame["node"].iloc[row])
        raise UserError(f"{table.place(row)}: node {node!r} stands in {before} already; {reason}")
