"""Arrays larger than memory, a block of rows at a time."""

from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_VALUES_AT_ONCE = 1 << 24
"""Values of a feature array that are in memory together: 64 MB of float32."""

ENTRIES_AT_ONCE = 1 << 24
"""Directed edges that are in memory together while a topology is sorted or checked: about 130 MB for each array."""


class SelectedRows:
    """Rows of a memory-mapped array that are read only when sliced: what one part holds of a graph's features."""

    def __init__(self, base: Any, rows: Array) -> None:
        self._base, self._rows = base, rows
        self.dtype, self.ndim = base.dtype, base.ndim
        self.shape = (len(rows), *base.shape[1:])

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, key: Any) -> Array:
        return np.asarray(self._base[self._rows[key]])


def select_rows(array: Array, rows: Array) -> Array:
    """array[rows], left on disk where the array is."""
    if isinstance(array, np.memmap | SelectedRows):
        return cast(Array, SelectedRows(array, rows))
    return array[rows]


def row_slices(array: Array, values_at_once: int = _VALUES_AT_ONCE) -> Iterator[slice]:
    """Slices that cover the rows in order, each of a bounded number of values."""
    width = int(np.prod(array.shape[1:], dtype=np.int64))
    step = max(1, values_at_once // max(1, width))
    for start in range(0, len(array), step):
        yield slice(start, min(start + step, len(array)))


def first_not_finite(array: Array) -> tuple[int, int] | None:
    """(row, column) of the first NaN or infinite value of [N, F], or None."""
    for rows in row_slices(array):
        finite = np.isfinite(array[rows])
        if not finite.all():
            row, column = np.argwhere(~finite)[0]
            return rows.start + int(row), int(column)
    return None


def row_ranges(indptr: Array, entries_at_once: int) -> Iterator[tuple[int, int]]:
    """Ranges of a CSR's rows that cover them in order, each of a bounded number of entries (or one row)."""
    start, last = 0, len(indptr) - 1
    while start < last:
        limit = int(indptr[start]) + entries_at_once
        stop = max(start + 1, int(np.searchsorted(indptr, limit, side="right")) - 1)
        yield start, min(stop, last)
        start = stop
