"""Kernels are compiled once, by a process that ends, and found by all others; without a cache they still work."""

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from llcg_dist.data.kernel_cache import KernelModule
from llcg_dist.sampling.compiled import KERNELS

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


def test_a_process_loads_what_another_has_compiled(tmp_path: Path) -> None:
    assert draw(tmp_path) == ["[0, 1]", "0"]
    (folder,) = tmp_path.iterdir()
    assert (folder / "complete").exists()
    files = {path: path.stat().st_mtime_ns for path in folder.rglob("*.nbc")}
    assert files
    assert draw(tmp_path) == ["[0, 1]", "0"]
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*.nbc")} == files


def test_kernels_that_are_not_compiled_do_not_pass_for_compiled_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = KERNELS.cache_folder()
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "0")
    assert KERNELS.cache_folder() == folder
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert KERNELS.cache_folder() != folder


def test_every_process_finds_the_same_folder() -> None:
    command = [sys.executable, "-c", "from llcg_dist.sampling.compiled import KERNELS; print(KERNELS.cache_folder())"]
    folders = {
        subprocess.run(command, env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, check=True).stdout
        for seed in "012"
    }
    assert len(folders) == 1


def test_where_no_folder_can_be_written_a_warning_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("LLCG_KERNEL_CACHE", str(tmp_path / "file"))
    with caplog.at_level(logging.WARNING, "llcg_dist"):
        assert KERNELS.ensure_compiled() is None
    assert "Set LLCG_KERNEL_CACHE" in caplog.text


@pytest.mark.full
def test_without_a_cache_a_process_compiles_for_itself(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert draw(tmp_path / "file") == ["[0, 1]", "1"]


def test_the_folder_is_that_of_the_source(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    here = KERNELS.cache_folder()
    changed = tmp_path / "kernels.py"
    changed.write_text("other")
    monkeypatch.setattr(KernelModule, "source", changed)
    assert KERNELS.cache_folder() != here
    monkeypatch.delenv("LLCG_KERNEL_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert KERNELS.cache_folder().parent == tmp_path / "llcg_dist"
