"""Work on arrays a block at a time gives what work on the whole gives."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llcg_dist.data import csr, cut
from llcg_dist.data.csr import undirected_csr
from llcg_dist.data.cut import cut_edge_counts
from llcg_dist.data.graph import TRAIN, Graph, induced_subgraph
from llcg_dist.data.rows import SelectedRows, first_not_finite, row_ranges, row_slices, select_rows
from llcg_dist.data.store import read_shard, write_shard
from llcg_dist.errors import UserError

EDGE_LISTS = st.integers(1, 12).flatmap(
    lambda n: st.tuples(st.just(n), st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=40))
)


def built(n: int, edges: list[tuple[int, int]], at_once: int) -> Graph:
    src, dst = np.array(edges, np.int64).reshape(-1, 2).T
    indptr, indices = undirected_csr(src, dst, n, at_once)
    features = np.arange(2 * n, dtype=np.float32).reshape(n, 2)
    return Graph(indptr, indices, features, np.arange(n) % 2, np.full(n, TRAIN, np.int8), 2)


@given(EDGE_LISTS, st.integers(1, 50))
def test_a_topology_built_in_pieces(edge_list: tuple[int, list[tuple[int, int]]], at_once: int) -> None:
    n, edges = edge_list
    graph = built(n, edges, at_once)
    neighbours: list[set[int]] = [set() for _ in range(n)]
    for a, b in edges:
        if a != b:
            neighbours[a].add(b)
            neighbours[b].add(a)
    rows = [graph.indices[i:j].tolist() for i, j in zip(graph.indptr[:-1], graph.indptr[1:], strict=True)]
    assert rows == [sorted(row) for row in neighbours]
    assert graph.indices.dtype == graph.indptr.dtype == np.int32


@given(EDGE_LISTS, st.integers(1, 50), st.data())
def test_a_topology_checked_in_pieces(edge_list: Any, at_once: int, data: st.DataObject) -> None:
    """A sound one passes; with one entry changed it never does."""
    graph = built(*edge_list, at_once=1000)

    def check(indices: Any) -> None:
        def require(holds: bool, rule: str) -> None:
            if not holds:
                raise UserError(rule)

        csr.require_structure(graph.indptr, indices, require, at_once)

    check(graph.indices)
    if len(graph.indices):
        changed = graph.indices.copy()
        place = data.draw(st.integers(0, len(changed) - 1))
        changed[place] = data.draw(st.integers(-1, graph.num_nodes).filter(lambda value: value != changed[place]))
        with pytest.raises(UserError):
            check(changed)


@given(EDGE_LISTS, st.integers(1, 3), st.integers(1, 50), st.data())
def test_cut_edges_counted_in_pieces(edge_list: Any, parts: int, at_once: int, data: st.DataObject) -> None:
    graph = built(*edge_list, at_once=1000)
    part = st.integers(0, parts - 1)
    assignment = np.array(data.draw(st.lists(part, min_size=graph.num_nodes, max_size=graph.num_nodes)))
    expected = [0] * parts
    for node in range(graph.num_nodes):
        for other in graph.indices[graph.indptr[node] : graph.indptr[node + 1]]:
            expected[assignment[node]] += assignment[node] != assignment[other]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cut, "ENTRIES_AT_ONCE", at_once)
        assert cut_edge_counts(graph, assignment, parts).tolist() == expected


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
    assert first_not_finite(array) is None
    array[4, 0] = np.nan
    array[2, 2] = -np.inf
    assert first_not_finite(array) == (2, 2)


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


def test_what_is_written_in_blocks_is_what_numpy_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llcg_dist.data.atomic_files.row_slices", lambda array: row_slices(array, 3))
    np.save(tmp_path / "features.npy", np.asfortranarray(np.arange(14, dtype=np.float32).reshape(7, 2)))
    graph = built(7, [(i, (i + 1) % 7) for i in range(7)], 1000)
    mapped = Graph(
        graph.indptr,
        graph.indices,
        np.load(tmp_path / "features.npy", mmap_mode="r"),
        graph.labels,
        graph.split,
        graph.num_classes,
        names={"node": np.array(["a", "bc", "d", "e", "é", "f", "g"]), "class": np.array(["no", "yes"])},
    )
    part = induced_subgraph(mapped, np.array([1, 2, 4]), lazy=True)
    write_shard(tmp_path / "part", part, "id")
    write_shard(tmp_path / "whole", mapped, "id")
    assert (tmp_path / "part" / "features.npy").read_bytes() == saved(graph.features[[1, 2, 4]])
    assert (tmp_path / "whole" / "features.npy").read_bytes() == saved(graph.features)
    assert (tmp_path / "whole" / "node_names.npy").read_bytes() == saved(mapped.names["node"])
    again = read_shard(tmp_path / "whole").graph
    assert {what: names.tolist() for what, names in again.names.items()} == {
        "node": ["a", "bc", "d", "e", "é", "f", "g"],
        "class": ["no", "yes"],
    }


def saved(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()
