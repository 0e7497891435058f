"""Mapping of the user's node ids to 0..N-1."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from pandas.api.types import is_integer_dtype, is_numeric_dtype

from llcg_dist.data.datasets.tables import Table, as_integers
from llcg_dist.data.rows import Array
from llcg_dist.errors import UserError


class NodeIds:
    """The ids of all nodes, integers or text; node i is row i of the file of features."""

    def __init__(self, path: Path, ids: pd.Index) -> None:
        self._path, self._ids = path, ids
        self._are_numbers = is_integer_dtype(ids)

    @classmethod
    def numbered(cls, path: Path, num_nodes: int) -> "NodeIds":
        """Ids 0..N-1: the row numbers of an .npy file."""
        return cls(path, pd.RangeIndex(num_nodes))

    @classmethod
    def named(cls, table: Table) -> "NodeIds":
        """Ids of the column `node`, which must be unique; integers if that keeps them as written (007 is text)."""
        table.require_no_empty(table.names.node)
        cells = table.frame[table.names.node]
        numbers = as_integers(cells)
        as_written = numbers is not None and (is_numeric_dtype(cells) or bool((cells == numbers.astype(str)).all()))
        ids = pd.Index(numbers if as_written else cells.astype(str))
        _require_unique(table, ids.to_series())
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
        """Those of `columns`, which hold ids, that must be read as text."""
        return [] if self._are_numbers else list(columns)

    def index_of_column(self, table: Table, column: str) -> Array:
        """[rows] int64: the node of each cell; raises UserError for the first that is empty or unknown."""
        table.require_no_empty(column)
        return self.index_of(table.frame[column], lambda row: f"{table.location(row)}: {column}")

    def index_of(self, ids: pd.Series, location: Callable[[int], str]) -> Array:
        """[n] int64: the node of each id; raises UserError for the first unknown one, with `location` of its row."""
        wanted = pd.to_numeric(ids, errors="coerce") if self._are_numbers else ids.astype(str)
        nodes = self._ids.get_indexer(pd.Index(wanted))
        unknown = np.flatnonzero(nodes < 0)
        if len(unknown):
            raise UserError(f"{location(unknown[0])} {str(ids.iloc[unknown[0]])!r} is not a node of {self._path}")
        return nodes

    def row_of_each_node(
        self, table: Table, needed: Array | None = None, explain: Callable[[int, int], str] | None = None
    ) -> Array:
        """[N] int64: the row of each node, or -1; raises UserError where a node has two, or a `needed` one has none.

        `needed`: [N] mask; None: no node needs a row. `explain(first row, second row)` may say what is wrong with two.
        """
        nodes = self.index_of_column(table, table.names.node)
        _require_unique(table, pd.Series(nodes), explain)
        rows = np.full(len(self), -1, np.int64)
        rows[nodes] = np.arange(len(nodes))
        missing = np.flatnonzero((rows < 0) & needed) if needed is not None else rows[:0]
        if len(missing):
            node = str(self._ids[missing[0]])
            rule = f"every labelled node needs a row, with an empty cell where it is in none; {node!r} has none"
            raise UserError(f"{table.path}: {len(table)} rows for the {len(self)} nodes of {self._path}: {rule}")
        return rows

    def require_row_of_each(self, path: Path, values: Array) -> None:
        """Raises UserError unless an array has a row for every node."""
        if values.ndim == 0 or len(values) != len(self):
            rule = f"row i is of node i, so there must be {len(self)}, as in {self._path}"
            raise UserError(f"{path}: has the shape {list(values.shape)}; {rule}")


def _require_unique(table: Table, ids: pd.Series, explain: Callable[[int, int], str] | None = None) -> None:
    """Raises UserError that names the first row whose id an earlier row has too."""
    duplicates = np.flatnonzero(ids.duplicated())
    if len(duplicates):
        row = int(duplicates[0])
        first = int(np.argmax(ids.to_numpy() == ids.iloc[row]))
        earlier = table.location(first).removeprefix(f"{table.path}: ")
        reason = explain(first, row) if explain else "a node must have one row"
        node = str(table.frame[table.names.node].iloc[row])
        raise UserError(f"{table.location(row)}: node {node!r} stands in {earlier} already; {reason}")
