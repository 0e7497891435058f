"""Graphs are made and cut in memory that a bound on the bytes of an edge describes."""

import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from llcg_dist.config.datasets import SyntheticConfig
from llcg_dist.data import csr, cut
from llcg_dist.data import rows as rows_module
from llcg_dist.data.csr import undirected_csr
from llcg_dist.data.datasets.synthetic import generate

NODES, EDGES = 50_000, 1_000_000
CONFIG = SyntheticConfig(nodes=NODES, degree=2 * EDGES / NODES, classes=47, features=16)


def peak_bytes(make: object) -> int:
    """The most that NumPy held at a time."""
    tracemalloc.start()
    try:
        assert callable(make)
        make()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_graph_is_generated_in_little_more_than_its_own_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """In pieces that are small against it: both directions (8 bytes an edge), the list of edges (8), one piece."""
    for module in (csr, cut):
        monkeypatch.setattr(module, "ENTRIES_AT_ONCE", EDGES // 16)
    monkeypatch.setattr(rows_module.row_slices, "__defaults__", (EDGES // 16,))
    held = NODES * (16 * 4 + 8 * 8)  # features, labels, and a few arrays of a number for every node
    assert peak_bytes(lambda: generate(CONFIG)) <= held + 30 * EDGES


def test_the_pieces_do_not_show_in_the_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    config = SyntheticConfig(nodes=2000, degree=12.0)
    whole = generate(config)
    for module in (csr, cut):
        monkeypatch.setattr(module, "ENTRIES_AT_ONCE", 700)
    monkeypatch.setattr(rows_module.row_slices, "__defaults__", (777,))  # neither divides what is drawn
    pieces = generate(config)
    for name in ("indptr", "indices", "features", "labels", "split"):
        assert np.array_equal(getattr(whole, name), getattr(pieces, name)), name


CUT = """
import resource, sys
import dgl.partition
from llcg_dist.data.metis import _metis_process

folder, way, room_mb = sys.argv[1], sys.argv[2], int(sys.argv[3])
held = next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith("VmData:"))
limit = held + room_mb * 2**20
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))  # private memory; mapped files do not count
if way == "dgl's":
    cut, make_symmetric = dgl.partition._CAPI_DGLMetisPartition_Hetero, dgl.partition._CAPI_DGLMakeSymmetric_Hetero
    dgl.partition._CAPI_DGLMetisPartition_Hetero = lambda graph, *rest: cut(make_symmetric(graph), *rest)
_metis_process(folder, 8)
"""


@pytest.fixture(scope="module")
def topology(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    folder = tmp_path_factory.mktemp("topology")
    rng = np.random.default_rng(0)
    src = rng.integers(100_000, size=2_000_000)
    indptr, indices = undirected_csr(src, (src + rng.integers(1, 30, size=len(src))) % 100_000, 100_000)
    np.save(folder / "indptr.npy", indptr.astype(np.int64))
    np.save(folder / "indices.npy", indices.astype(np.int64))
    return folder, len(indices)


@pytest.mark.parametrize("way", ["ours", "dgl's"])
def test_metis_takes_the_graph_as_it_is_mapped(topology: tuple[Path, int], way: str) -> None:
    """Room for METIS' own arrays, but not for a symmetric copy of the graph, as DGL would make first."""
    folder, entries = topology
    room_mb = 64 + entries * 41 // 2**20  # the thread's stack, and bytes for every entry: it takes 30, and a copy 23
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CUT, str(folder), way, str(room_mb)],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=folder,
    )
    assert (done.returncode == 0) == (way == "ours"), done.stderr
