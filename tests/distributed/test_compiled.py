"""Kernels are compiled once, by a process that ends, and found by all others; without a cache they still work."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

DRAW = """
import sys, time
import numpy as np
from llcg_dist.data.csr import Topology
from llcg_dist.sampling.neighbor import NeighborSampler
topology = Topology(np.array([0, 1, 2], np.int32), np.array([1, 0], np.int32))
print(NeighborSampler(topology, [1]).sample(np.array([0]), 1).nodes.tolist())
from llcg_dist.sampling import kernels
print(sum(kernels.sample_layer.stats.cache_misses.values()))
"""


def draw(cache: Path) -> list[str]:
    environment = os.environ | {"LLCG_KERNEL_CACHE": str(cache), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", DRAW], env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")[:2]


@pytest.mark.full
def test_a_process_loads_what_another_has_compiled(tmp_path: Path) -> None:
    assert draw(tmp_path) == ["[0, 1]", "0"]
    (folder,) = tmp_path.iterdir()
    assert (folder / "complete").exists()
    files = {path: path.stat().st_mtime_ns for path in folder.rglob("*.nbc")}
    assert files
    assert draw(tmp_path) == ["[0, 1]", "0"]
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*.nbc")} == files


@pytest.mark.full
def test_without_a_cache_a_process_compiles_for_itself(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert draw(tmp_path / "file") == ["[0, 1]", "1"]
