"""Compressed sparse rows: a topology, how it is built from edges and checked, where the entries of rows stand."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from llcg_dist.data.rows import ENTRIES_AT_ONCE, Array, row_ranges


@dataclass(frozen=True)
class Topology:
    """Row i's neighbours are indices[indptr[i]:indptr[i+1]]; every edge in both directions."""

    indptr: Array
    indices: Array

    @property
    def num_nodes(self) -> int:
        return len(self.indptr) - 1


def require_structure(
    indptr: Array, indices: Array, require: Callable[[bool, str], None], entries_at_once: int = ENTRIES_AT_ONCE
) -> None:
    """Sorted, unique, without self-loops, in both directions; what is needed besides is one copy of the topology."""
    n = len(indptr) - 1
    require(indptr[0] == 0 and indptr[-1] == len(indices), "indptr does not span indices")
    require(bool((np.diff(indptr) >= 0).all()), "indptr is not ascending")
    if len(indices) == 0:
        return
    require(int(indices.min()) >= 0 and int(indices.max()) < n, f"an edge ends outside the nodes 0..{n - 1}")
    for first, last in row_ranges(indptr, entries_at_once):
        row, column = row_entries(indptr, indices, first, last)
        falls = (row[1:] == row[:-1]) & (column[1:] <= column[:-1])
        require(not bool(falls.any()), "edges are not sorted and unique")
        require(not bool((row == column).any()), "there is a self-loop")
    ones = np.ones(len(indices), np.int8)
    transposed = csr_array((ones, indices, indptr), shape=(n, n)).tocsc()
    both = np.array_equal(transposed.indptr, indptr) and np.array_equal(transposed.indices, indices)
    require(both, "an edge stands in one direction only")


def undirected_csr(src: Array, dst: Array, num_nodes: int, entries_at_once: int | None = None) -> tuple[Array, Array]:
    """Both directions of every edge, once each, without self-loops, as (indptr, indices).

    Rows are sorted a range at a time, so that what is needed besides the result is small against it. Every range reads
    all edges again, hence few of them, however many edges there are.
    """
    entries_at_once = entries_at_once or max(ENTRIES_AT_ONCE, 2 * len(src) // 16)
    at_most = np.zeros(num_nodes + 1, np.int64)
    pieces = [slice(start, start + entries_at_once) for start in range(0, len(src), entries_at_once)]
    for piece in pieces:
        for ends in (src[piece], dst[piece]):
            at_most[1:] += np.bincount(ends, minlength=num_nodes)
    np.cumsum(at_most, out=at_most)
    counts = np.zeros(num_nodes, np.int64)
    indices = np.empty(int(at_most[-1]), index_dtype(num_nodes, int(at_most[-1])))
    filled = 0
    for first, last in row_ranges(at_most, entries_at_once):
        key = np.concatenate(
            [np.empty(0, np.int64)]
            + [_keys(*ends, first, last, num_nodes) for p in pieces for ends in ((src[p], dst[p]), (dst[p], src[p]))]
        )
        key.sort()
        key = key[np.concatenate([np.ones(min(1, len(key)), bool), key[1:] != key[:-1]])]
        counts[first:last] = np.bincount(key // num_nodes - first, minlength=last - first)
        indices[filled : filled + len(key)] = key % num_nodes
        filled += len(key)
    dtype = index_dtype(num_nodes, filled)
    indptr = np.zeros(num_nodes + 1, dtype)
    np.cumsum(counts, out=indptr[1:])
    indices.resize(filled, refcheck=False)  # in place: no other array looks into it
    return indptr, indices.astype(dtype, copy=False)


def _keys(row: Array, column: Array, first: int, last: int, num_nodes: int) -> Array:
    """row * num_nodes + column of every entry of the rows first..last-1 that is no self-loop."""
    keep = (row >= first) & (row < last) & (row != column)
    key: Array = row[keep].astype(np.int64)
    key *= num_nodes
    key += column[keep]
    return key


def index_dtype(num_nodes: int, num_entries: int) -> type[np.signedinteger[Any]]:
    """int32 halves the bytes of the topology and is what sparse products use inside."""
    return np.int32 if max(num_nodes, num_entries) < 2**31 else np.int64


def row_positions(indptr: Array, rows: Array) -> tuple[Array, Array]:
    """Where the entries of these rows stand in `indices`, row after row, and the end of each row among them."""
    starts = indptr[rows].astype(np.int64)
    counts = indptr[rows + 1].astype(np.int64) - starts
    row_ends = np.cumsum(counts)
    return np.arange(counts.sum()) + np.repeat(starts - (row_ends - counts), counts), row_ends


def row_entries(indptr: Array, indices: Array, first: int, last: int) -> tuple[Array, Array]:
    """(row, column) of every entry of the rows first..last-1, as int64."""
    ends = indptr[first : last + 1]
    row = np.repeat(np.arange(first, last, dtype=np.int64), np.diff(ends))
    return row, indices[ends[0] : ends[-1]].astype(np.int64)
