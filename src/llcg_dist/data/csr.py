"""Compressed sparse row (CSR) topologies: building from edge lists, validation, and positions of row entries."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from llcg_dist.data.rows import ENTRIES_PER_CHUNK, Array, row_ranges


@dataclass(frozen=True)
class Topology:
    """Adjacency in CSR form: row i's neighbours are indices[indptr[i]:indptr[i+1]]; every edge in both directions."""

    indptr: Array
    indices: Array

    @property
    def num_nodes(self) -> int:
        return len(self.indptr) - 1


def require_undirected_csr(
    indptr: Array, indices: Array, require: Callable[[bool, str], None], entries_per_chunk: int = ENTRIES_PER_CHUNK
) -> None:
    """Calls `require(holds, rule)` for each property of an undirected CSR: sorted, unique, symmetric, no self-loops.

    A chunk of entries is in memory at a time.
    """
    n = len(indptr) - 1
    require(indptr[0] == 0 and indptr[-1] == len(indices), "indptr does not span indices")
    require(bool((np.diff(indptr) >= 0).all()), "indptr is not ascending")
    if len(indices) == 0:
        return
    require(int(indices.min()) >= 0 and int(indices.max()) < n, f"an edge ends outside the nodes 0..{n - 1}")
    one_way = np.uint64(0)
    for first, last in row_ranges(indptr, entries_per_chunk):
        row, column = row_entries(indptr, indices, first, last)
        unsorted = (row[1:] == row[:-1]) & (column[1:] <= column[:-1])
        require(not bool(unsorted.any()), "edges are not sorted and unique")
        require(not bool((row == column).any()), "there is a self-loop")
        with np.errstate(over="ignore"):
            one_way += _directions(row, column, n)
    require(one_way == 0, "an edge stands in one direction only")


def _directions(row: Array, column: Array, num_nodes: int) -> np.uint64:
    """The sum of 64 random bits of every edge, added in one direction and subtracted in the other: 0 where all edges
    stand in both, and by chance (1 in 2^64) where not."""
    bits = (np.minimum(row, column) * num_nodes + np.maximum(row, column)).astype(np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):  # splitmix64's finaliser
        bits ^= bits >> np.uint64(shift)
        bits *= np.uint64(factor)
    return np.where(row < column, bits, np.uint64(0) - bits).sum(dtype=np.uint64)


def undirected_csr(src: Array, dst: Array, num_nodes: int, entries_per_chunk: int | None = None) -> tuple[Array, Array]:
    """(indptr, indices) of an edge list: both directions of every edge, once each, sorted, without self-loops.

    Rows are sorted one range after the other, so that temporary memory stays small against the result. Every range
    reads all edges again, hence there are at most about 16 ranges, however many edges there are.
    """
    entries_per_chunk = entries_per_chunk or max(8 * ENTRIES_PER_CHUNK, 2 * len(src) // 16)
    max_indptr = np.zeros(num_nodes + 1, np.int64)  # before duplicates and self-loops are removed
    chunks = [slice(start, start + entries_per_chunk) for start in range(0, len(src), entries_per_chunk)]
    for chunk in chunks:
        for nodes in (src[chunk], dst[chunk]):
            max_indptr[1:] += np.bincount(nodes, minlength=num_nodes)
    np.cumsum(max_indptr, out=max_indptr)
    counts = np.zeros(num_nodes, np.int64)
    indices = np.empty(int(max_indptr[-1]), index_dtype(num_nodes, int(max_indptr[-1])))
    filled = 0
    for first, last in row_ranges(max_indptr, entries_per_chunk):
        key = np.concatenate(
            [np.empty(0, np.int64)]
            + [
                sort_keys(*ends, first, last, num_nodes)
                for c in chunks
                for ends in ((src[c], dst[c]), (dst[c], src[c]))
            ]
        )
        counts[first:last], columns = columns_of_keys(key, first, last, num_nodes)
        indices[filled : filled + len(columns)] = columns
        filled += len(columns)
    dtype = index_dtype(num_nodes, filled)
    indptr = np.zeros(num_nodes + 1, dtype)
    np.cumsum(counts, out=indptr[1:])
    indices.resize(filled, refcheck=False)  # in place: no other array is a view of it
    return indptr, indices.astype(dtype, copy=False)


def sort_keys(row: Array, column: Array, first: int, last: int, num_nodes: int) -> Array:
    """Sort keys row * num_nodes + column of the entries of the rows first..last-1, without self-loops."""
    keep = (row >= first) & (row < last) & (row != column)
    key: Array = row[keep].astype(np.int64)
    key *= num_nodes
    key += column[keep]
    return key


def columns_of_keys(keys: Array, first: int, last: int, num_nodes: int) -> tuple[Array, Array]:
    """([last - first] entries of every row, their columns) of sort keys of these rows, which are sorted in place;
    duplicates count once."""
    keys.sort()
    if len(keys):
        keys = keys[np.concatenate([[True], keys[1:] != keys[:-1]])]
    rows = keys // num_nodes
    keys -= rows * num_nodes
    rows -= first
    return np.bincount(rows, minlength=last - first), keys


def index_dtype(num_nodes: int, num_entries: int) -> type[np.signedinteger[Any]]:
    """int32 where it is wide enough: half the bytes of a topology, and the index type of the sparse kernels."""
    return np.int32 if max(num_nodes, num_entries) < 2**31 else np.int64


def row_positions(indptr: Array, rows: Array) -> tuple[Array, Array]:
    """(positions of these rows' entries in `indices`, row after row; [len(rows)] cumulative number of entries)."""
    starts = indptr[rows].astype(np.int64)
    counts = indptr[rows + 1].astype(np.int64) - starts
    row_ends = np.cumsum(counts)
    return np.arange(counts.sum()) + np.repeat(starts - (row_ends - counts), counts), row_ends


def row_entries(indptr: Array, indices: Array, first: int, last: int) -> tuple[Array, Array]:
    """(row, column) of every entry of the rows first..last-1, as int64."""
    ends = indptr[first : last + 1]
    row = np.repeat(np.arange(first, last, dtype=np.int64), np.diff(ends))
    return row, indices[ends[0] : ends[-1]].astype(np.int64)
