"""Rows of arrays in chunks: ranges and slices cover them, rows of a mapped array stay on disk."""

from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from llcg_dist.data.rows import SelectedRows, first_nonfinite, row_ranges, row_slices, select_rows


@given(st.lists(st.integers(0, 9), min_size=1, max_size=20), st.integers(1, 15))
def test_ranges_cover_the_rows_and_keep_to_the_limit(counts: list[int], at_once: int) -> None:
    indptr = np.cumsum([0, *counts])
    ranges = list(row_ranges(indptr, at_once))
    assert [row for first, last in ranges for row in range(first, last)] == list(range(len(counts)))
    assert all(last - first == 1 or indptr[last] - indptr[first] <= at_once for first, last in ranges)


@given(st.integers(0, 30), st.integers(0, 5), st.integers(1, 40))
def test_slices_cover_the_rows_and_keep_to_the_limit(rows: int, width: int, at_once: int) -> None:
    array = np.arange(rows * width).reshape(rows, width)
    slices = list(row_slices(array, at_once))
    assert [row for s in slices for row in range(s.start, s.stop)] == list(range(rows))
    assert all(s.stop - s.start == 1 or (s.stop - s.start) * width <= at_once for s in slices)


def test_the_first_value_that_is_not_finite() -> None:
    array = np.zeros((5, 3), np.float16)
    assert first_nonfinite(array) is None
    array[4, 0] = np.nan
    array[2, 2] = -np.inf
    assert first_nonfinite(array) == (2, 2)


def test_rows_of_a_mapped_array_stay_on_disk(tmp_path: Path) -> None:
    whole = np.arange(40, dtype=np.float16).reshape(20, 2)
    np.save(tmp_path / "whole.npy", whole)
    mapped = np.load(tmp_path / "whole.npy", mmap_mode="r")
    some = select_rows(mapped, np.array([3, 5, 8, 13]))
    assert isinstance(some, SelectedRows)
    fewer = select_rows(some, np.array([1, 3]))
    assert isinstance(fewer, SelectedRows)
    assert (some.shape, fewer.shape, len(fewer), fewer.dtype) == ((4, 2), (2, 2), 2, np.float16)
    assert (fewer[0:2] == whole[[5, 13]]).all()
    assert isinstance(select_rows(whole, np.array([1])), np.ndarray)
