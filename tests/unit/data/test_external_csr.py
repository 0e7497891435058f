"""Edges that are sorted on disk give the same bits as edges that are sorted in memory."""

from pathlib import Path

import numpy as np
import pytest

from llcg_dist.data.csr import undirected_csr
from llcg_dist.data.external_csr import ExternalCsr
from llcg_dist.data.rows import Array
from llcg_dist.data.workspace import Workspace

NODES, EDGES = 500, 6000


def edges(seed: int = 0) -> tuple[Array, Array]:
    """With a hub, duplicates, self-loops, and nodes without an edge."""
    rng = np.random.default_rng(seed)
    src, dst = rng.integers(NODES - 9, size=EDGES), (rng.random(EDGES) ** 2 * (NODES - 9)).astype(np.int64)
    src[: EDGES // 3] = 7
    return np.append(src, [3, 3]), np.append(dst, [3, 3])


def sorted_on_disk(folder: Path, memory: int, piece: int, said: list[str] | None = None) -> tuple[Array, Array]:
    src, dst = edges()
    csr = ExternalCsr(Workspace(folder, memory, said.append if said is not None else print), NODES, len(src))
    for start in range(0, len(src), piece):
        csr.add(src[start : start + piece], dst[start : start + piece])
    topology = csr.finish()
    return topology.indptr, topology.indices


# All at once; several buckets; buckets that are distributed again, down to single rows.
@pytest.mark.parametrize("memory", [1 << 30, 100_000, 10_000, 2_000])
@pytest.mark.parametrize("piece", [10_000, 999])
def test_the_same_bits_as_in_memory(tmp_path: Path, memory: int, piece: int) -> None:
    expected = undirected_csr(*edges(), NODES)
    for there, here in zip(sorted_on_disk(tmp_path, memory, piece), expected, strict=True):
        assert there.dtype == here.dtype
        assert np.array_equal(there, here)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["indices.npy", "indptr.npy"]
    for name, here in zip(("indptr", "indices"), expected, strict=True):
        np.save(tmp_path / "saved.npy", here)
        assert (tmp_path / f"{name}.npy").read_bytes() == (tmp_path / "saved.npy").read_bytes()


def test_no_more_is_in_memory_than_there_is_room_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Row 7 alone has more entries than room, and cannot be divided."""
    read: list[int] = []
    fromfile = np.fromfile

    def counted(*arguments: object) -> Array:
        keys: Array = fromfile(*arguments)  # type: ignore[call-overload]
        read.append(len(keys))
        return keys

    monkeypatch.setattr(np, "fromfile", counted)
    sorted_on_disk(tmp_path, 40 * 300, 10_000)
    assert sorted(read)[-1] > 300
    assert sorted(read)[-2] <= 300


def test_wide_indices_where_entries_are_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "llcg_dist.data.external_csr.index_dtype", lambda nodes, entries: np.int64 if entries > 1000 else np.int32
    )
    indptr, indices = sorted_on_disk(tmp_path, 100_000, 999)
    assert indptr.dtype == indices.dtype == np.int64
    assert np.array_equal(indices, undirected_csr(*edges(), NODES)[1])


def test_no_edges(tmp_path: Path) -> None:
    topology = ExternalCsr(Workspace(tmp_path, 1000), 4, 0).finish()
    assert topology.indptr.tolist() == [0] * 5
    assert len(topology.indices) == 0
