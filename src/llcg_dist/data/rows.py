"""Arrays larger than memory, mapped from disk and processed in chunks of rows."""

from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_VALUES_PER_CHUNK = 1 << 24
"""Values of a feature array that are in memory at a time: 64 MB of float32."""

ENTRIES_PER_CHUNK = 1 << 21
"""Directed edges that are in memory at a time while a topology is checked, counted or cut: 17 MB per int64 array."""


class SelectedRows:
    """base[rows] of a memory-mapped array, lazily: rows are read when sliced. Used for the features of one part."""

    def __init__(self, base: Any, rows: Array) -> None:
        self._base, self._rows = base, rows
        self.dtype, self.ndim = base.dtype, base.ndim
        self.shape = (len(rows), *base.shape[1:])

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, key: Any) -> Array:
        return np.asarray(self._base[self._rows[key]])


def select_rows(array: Array, rows: Array) -> Array:
    """array[rows]; lazy where the array is memory-mapped."""
    if isinstance(array, np.memmap | SelectedRows):
        return cast(Array, SelectedRows(array, rows))
    return array[rows]


def frozen(array: Array) -> Array:
    """The array as read-only, which memory-mapped ones are: to the kernels that is a type of its own."""
    array = np.asarray(array).view()
    array.flags.writeable = False
    return array


def row_slices(array: Array, values_per_chunk: int = _VALUES_PER_CHUNK) -> Iterator[slice]:
    """Slices that cover the rows in order, each of at most `values_per_chunk` values (or one row)."""
    width = int(np.prod(array.shape[1:], dtype=np.int64))
    yield from slices(len(array), max(1, values_per_chunk // max(1, width)))


def slices(count: int, at_once: int) -> Iterator[slice]:
    """Slices of at most `at_once` that cover 0..count-1 in order."""
    for start in range(0, count, at_once):
        yield slice(start, min(start + at_once, count))


def first_nonfinite(array: Array) -> tuple[int, int] | None:
    """(row, column) of the first NaN or infinite value of [N, F], or None."""
    for rows in row_slices(array):
        finite = np.isfinite(array[rows])
        if not finite.all():
            row, column = np.argwhere(~finite)[0]
            return rows.start + int(row), int(column)
    return None


def row_ranges(indptr: Array, entries_per_chunk: int) -> Iterator[tuple[int, int]]:
    """Ranges (start, stop) that cover the rows of a CSR in order, each of at most `entries_per_chunk` (or one row)."""
    start, last = 0, len(indptr) - 1
    while start < last:
        limit = min(int(indptr[start]) + entries_per_chunk, int(indptr[last]))
        # Of the array's own type: searchsorted would convert all of a large array for every call.
        stop = max(start + 1, int(np.searchsorted(indptr, indptr.dtype.type(limit), side="right")) - 1)
        yield start, min(stop, last)
        start = stop
