"""Compressed sparse rows, built and checked at once or in chunks, against sets of neighbours."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llcg_dist.data.csr import index_dtype, require_undirected_csr, row_entries, row_positions, undirected_csr
from llcg_dist.data.rows import Array
from llcg_dist.errors import UserError
from tests.helpers.edge_lists import edge_lists, neighbour_lists
from tests.helpers.graphs import Edge, graph_of, rows_of


@given(edge_lists())
def test_undirected_csr(drawn: tuple[int, list[Edge]]) -> None:
    n, edges = drawn
    src, dst = np.array(edges, np.int32).reshape(-1, 2).T
    indptr, indices = undirected_csr(src, dst, n)
    assert rows_of(indptr, indices) == neighbour_lists(n, edges)
    assert indptr.dtype == indices.dtype == np.int32
    graph_of(edges, n).validate("test")


@given(edge_lists(), st.integers(1, 50))
def test_a_topology_built_in_chunks(drawn: tuple[int, list[Edge]], entries_per_chunk: int) -> None:
    n, edges = drawn
    src, dst = np.array(edges, np.int64).reshape(-1, 2).T
    indptr, indices = undirected_csr(src, dst, n, entries_per_chunk)
    assert rows_of(indptr, indices) == neighbour_lists(n, edges)
    assert indices.dtype == indptr.dtype == np.int32


@given(edge_lists(), st.integers(1, 50), st.data())
def test_a_topology_checked_in_chunks(
    drawn: tuple[int, list[Edge]], entries_per_chunk: int, data: st.DataObject
) -> None:
    """A sound one passes; with one entry changed it never does."""
    n, edges = drawn
    graph = graph_of(edges, n)

    def check(indices: Array) -> None:
        def require(holds: bool, rule: str) -> None:
            if not holds:
                raise UserError(rule)

        require_undirected_csr(graph.indptr, indices, require, entries_per_chunk)

    check(graph.indices)
    if len(graph.indices):
        changed = graph.indices.copy()
        place = data.draw(st.integers(0, len(changed) - 1))
        changed[place] = data.draw(st.integers(-1, graph.num_nodes).filter(lambda value: value != changed[place]))
        with pytest.raises(UserError):
            check(changed)


def test_undirected_csr_does_not_overflow_in_int32() -> None:
    """src · n + dst of the last nodes is beyond 2^32."""
    n = 100_000
    ends = np.array([n - 1], np.int32), np.array([n - 2], np.int32)
    indptr, indices = undirected_csr(*ends, n)
    assert indices.tolist() == [n - 1, n - 2]
    assert (indptr[-3], indptr[-2], indptr[-1]) == (0, 1, 2)


def test_index_dtype() -> None:
    assert index_dtype(10, 2**31 - 1) is np.int32
    assert index_dtype(10, 2**31) is np.int64
    assert index_dtype(2**31, 10) is np.int64


INDPTR, INDICES = np.array([0, 2, 2, 5], np.int32), np.array([1, 2, 0, 1, 2], np.int32)
"""Rows [1, 2], [] and [0, 1, 2]."""


def test_row_positions_by_hand() -> None:
    positions, row_ends = row_positions(INDPTR, np.array([2, 1, 0]))
    assert positions.tolist() == [2, 3, 4, 0, 1]
    assert row_ends.tolist() == [3, 3, 5]


def test_row_entries_by_hand() -> None:
    row, column = row_entries(INDPTR, INDICES, 1, 3)
    assert (row.tolist(), column.tolist()) == ([2, 2, 2], [0, 1, 2])
    assert row.dtype == column.dtype == np.int64
