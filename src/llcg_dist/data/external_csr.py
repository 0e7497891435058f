"""The undirected CSR of an edge list that is larger than memory: an external bucket sort on disk.

Both directions of every edge go into files by ranges of their row (buckets). Then one bucket after the other is read,
sorted, freed of duplicates and written: together they are the rows of the CSR in order.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from llcg_dist.data.array_writer import ArrayWriter, naming
from llcg_dist.data.atomic_files import save_array
from llcg_dist.data.csr import Topology, columns_of_keys, index_dtype, sort_keys
from llcg_dist.data.rows import Array
from llcg_dist.data.workspace import Workspace

_KEY = np.dtype(np.int64)
_BYTES_OF_EDGE = 80
"""Memory for each edge while one of its directions is distributed over the buckets."""
_BYTES_OF_ENTRY = 40
"""Memory for each entry (directed edge) of a bucket that is sorted."""
_MOST_BUCKETS = 256
"""Files that are open at a time; a bucket that is still too large is distributed again."""


class ExternalCsr:
    """Takes edges in any order, a few at a time; `finish` returns what csr.undirected_csr would return of them all."""

    def __init__(self, workspace: Workspace, num_nodes: int, num_edges: int) -> None:
        """`num_edges`: about how many will come."""
        self._workspace, self._num_nodes = workspace, num_nodes
        self._entries_at_once = max(1, workspace.memory // _BYTES_OF_ENTRY)
        self._folder = workspace.folder / "buckets"
        self._folder.mkdir()
        self._buckets = self._split(self._folder / "all", 0, num_nodes, 2 * num_edges)

    def add(self, src: Array, dst: Array) -> None:
        """Adds edges between nodes 0..N-1."""
        step = max(1, self._workspace.memory // _BYTES_OF_EDGE)
        for start in range(0, len(src), step):
            piece = slice(start, start + step)
            for row, column in ((src[piece], dst[piece]), (dst[piece], src[piece])):
                self._buckets.add(sort_keys(row, column, 0, self._num_nodes, self._num_nodes))

    def finish(self) -> Topology:
        """Sorts; indptr.npy and indices.npy are then in the workspace's folder, and mapped from there."""
        folder, num_nodes = self._workspace.folder, self._num_nodes
        degrees = np.zeros(num_nodes, np.int64)
        writer = ArrayWriter(folder / "indices.npy", index_dtype(num_nodes, 0))
        progress = self._workspace.progress("sorting edges", self._buckets.num_entries, "entries")
        for keys, first, last in self._in_order(self._buckets):
            progress.add(len(keys))
            degrees[first:last], columns = columns_of_keys(keys, first, last, num_nodes)
            writer.append(columns)
        shutil.rmtree(self._folder)
        dtype = index_dtype(num_nodes, len(writer))
        indices = writer.finish()
        if indices.dtype != dtype:
            save_array(folder / "indices.npy", indices, dtype)
        indptr = np.zeros(num_nodes + 1, dtype)
        np.cumsum(degrees, out=indptr[1:])
        save_array(folder / "indptr.npy", indptr)
        return Topology(*(np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("indptr", "indices")))

    def _split(self, stem: Path, first: int, last: int, entries: int) -> "_Buckets":
        wanted = 2 * entries // self._entries_at_once + 1  # rows differ in length, and so will the buckets
        return _Buckets(stem, first, last, min(wanted, _MOST_BUCKETS, last - first), self._num_nodes)

    def _in_order(self, buckets: "_Buckets") -> Iterator[tuple[Array, int, int]]:
        """(sort keys, first row, last row): one range of rows after the other, each small enough to be sorted."""
        for path, first, last in buckets.close():
            entries = path.stat().st_size // _KEY.itemsize
            if entries <= self._entries_at_once or last - first == 1:
                keys = np.fromfile(path, _KEY)
                path.unlink()
                yield keys, first, last
                continue
            finer = self._split(path, first, last, entries)
            with path.open("rb") as file:
                while len(keys := np.fromfile(file, _KEY, self._entries_at_once)):
                    finer.add(keys)
            path.unlink()
            yield from self._in_order(finer)


class _Buckets:
    """Files of sort keys (row * N + column), one for each of several ranges of the rows first..last-1."""

    def __init__(self, stem: Path, first: int, last: int, count: int, num_nodes: int) -> None:
        self._first, self._last, self._num_nodes = first, last, num_nodes
        self._width = -(-(last - first) // count)
        paths = [stem.with_name(f"{stem.name}-{number}") for number in range(-(-(last - first) // self._width))]
        self._files = [path.open("wb") for path in paths]
        self.num_entries = 0

    def add(self, keys: Array) -> None:
        self.num_entries += len(keys)
        bucket = ((keys // self._num_nodes - self._first) // self._width).astype(np.uint16)
        ends = np.cumsum(np.bincount(bucket, minlength=len(self._files)))
        keys = keys[np.argsort(bucket, kind="stable")]  # of 16 bits: a radix sort
        for file, first, last in zip(self._files, np.append(0, ends[:-1]), ends, strict=True):
            if last > first:
                with naming(Path(file.name)):
                    keys[first:last].tofile(file)

    def close(self) -> list[tuple[Path, int, int]]:
        """(path, first row, last row) of every bucket, by ascending rows."""
        for file in self._files:
            with naming(Path(file.name)):
                file.close()
        starts = range(self._first, self._last, self._width)
        ranges = [(start, min(start + self._width, self._last)) for start in starts]
        return [(Path(file.name), first, last) for file, (first, last) in zip(self._files, ranges, strict=True)]
