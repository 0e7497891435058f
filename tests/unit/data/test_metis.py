"""METIS: the parts it finds, the same in any process, in memory that the size of the graph bounds."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from llcg_dist.config.partition import PartitionBackend
from llcg_dist.data.csr import undirected_csr
from llcg_dist.data.cut import cut_edge_counts
from llcg_dist.data.metis import Metis, choose_metis
from llcg_dist.errors import UserError
from tests.helpers.graphs import graph_of
from tests.helpers.jobs import REPOSITORY
from tests.helpers.partitions import BACKENDS, CASES, CLIQUES, COMMUNITIES, assigned, assignments, cliques


@pytest.fixture(scope="module")
def starting_process() -> Iterator[subprocess.Popen[str]]:
    """Looks for parts while this process does."""
    command, pipe = [sys.executable, "-m", "tests.helpers.partitions"], subprocess.PIPE
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=pipe, stderr=pipe, text=True) as process:
        yield process
        process.kill()


@pytest.fixture(scope="module")
def fresh_process(
    starting_process: subprocess.Popen[str], after_other_work: dict[str, list[int]]
) -> dict[str, list[int]]:
    """What the first calls in a process of its own find."""
    found, errors = starting_process.communicate(timeout=120)
    assert starting_process.returncode == 0, errors
    return json.loads(found)


@pytest.fixture(scope="module")
def after_other_work(starting_process: subprocess.Popen[str]) -> dict[str, list[int]]:
    """What calls find in this process: other work done, memory and environment full of other things, another order."""
    torch.randn(300, 300) @ torch.randn(300, 300)
    np.random.seed(3)
    torch.manual_seed(3)
    rubbish = [np.full(1 << k, 0xAB, np.uint8) for k in range(4, 22) for _ in range(3)]
    del rubbish
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RUBBISH", "\xab" * 50_000)
        return assignments(reversed(CASES))


@pytest.mark.parametrize("case", CASES)
def test_the_same_parts_in_any_process_whatever_ran_before(
    fresh_process: dict[str, list[int]], after_other_work: dict[str, list[int]], case: str
) -> None:
    """Every store built from the same settings must have the same parts, on whichever host."""
    assert after_other_work[case] == fresh_process[case]


def test_the_seed_changes_the_parts(after_other_work: dict[str, list[int]]) -> None:
    assert len({tuple(after_other_work[case]) for case in COMMUNITIES}) == len(COMMUNITIES)


@pytest.mark.parametrize("case", COMMUNITIES)
def test_parts_are_balanced(after_other_work: dict[str, list[int]], case: str) -> None:
    sizes = np.bincount(after_other_work[case], minlength=4)
    assert sizes.sum() == 400
    assert sizes.max() <= 1.1 * 100
    if case.startswith("random"):
        assert sizes.tolist() == [100] * 4


@pytest.mark.parametrize("case", CLIQUES)
def test_metis_cuts_nothing_where_nothing_need_be_cut(after_other_work: dict[str, list[int]], case: str) -> None:
    parts = np.array(after_other_work[case])
    assert cut_edge_counts(cliques(), parts, 4).tolist() == [0, 0, 0, 0]
    assert np.bincount(parts, minlength=4).tolist() == [10, 10, 10, 10]


@pytest.mark.parametrize("backend", BACKENDS)
def test_metis_finds_what_belongs_together(backend: str) -> None:
    """Four cliques of 25 in a ring, numbered in turns: only the ring is cut, in the order that the seed gives them."""
    inside = [(c + 4 * i, c + 4 * j) for c in range(4) for i in range(25) for j in range(i)]
    ring = [(c, (c + 1) % 4 + 4) for c in range(4)]
    graph = graph_of(inside + ring, 100)
    assignment = assigned("metis", 3, graph, backend)
    assert cut_edge_counts(graph, assignment, 4).tolist() == [2, 2, 2, 2]
    assert all(len(set(assignment[c::4])) == 1 for c in range(4))


CUT = """
import resource, sys
from llcg_dist.data.metis_process import main

held = next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith("VmData:"))
limit = held + int(sys.argv[3]) * 2**20
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))  # private memory; mapped files do not count
main(sys.argv[1], sys.argv[2], 8)
"""


def test_metis_takes_the_graph_as_it_is_mapped(tmp_path: Path) -> None:
    """Room for METIS' own arrays, but not for a copy of the graph besides. DGL would make one."""
    rng = np.random.default_rng(0)
    src = rng.integers(100_000, size=2_000_000)
    indptr, indices = undirected_csr(src, (src + rng.integers(1, 30, size=len(src))) % 100_000, 100_000)
    np.save(tmp_path / "indptr.npy", indptr.astype(np.int64))
    np.save(tmp_path / "indices.npy", indices.astype(np.int64))
    # The thread's stack, and bytes for every entry: METIS takes 30, and a copy 23.
    room_mb = 64 + len(indices) * 41 // 2**20
    command = [sys.executable, "-W", "ignore", "-c", CUT, "pymetis", str(tmp_path), str(room_mb)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert np.bincount(np.load(tmp_path / "assignment.npy")).max() < 1.1 * 100_000 / 8


def test_a_library_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "dgl" else object())
    assert choose_metis(PartitionBackend.auto) == Metis("pymetis")
    with pytest.raises(UserError, match=r"^partition.backend=dgl: not installed here \(there is pymetis\)"):
        choose_metis(PartitionBackend.dgl)
