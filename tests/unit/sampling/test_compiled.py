"""Where compiled kernels are kept: one folder for all processes of this source and these versions."""

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from llcg_dist.data.kernel_cache import KernelModule
from llcg_dist.sampling.compiled import KERNELS


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


def test_the_folder_is_that_of_the_source(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    here = KERNELS.cache_folder()
    changed = tmp_path / "kernels.py"
    changed.write_text("other")
    monkeypatch.setattr(KernelModule, "source", changed)
    assert KERNELS.cache_folder() != here
    monkeypatch.delenv("LLCG_KERNEL_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert KERNELS.cache_folder().parent == tmp_path / "llcg_dist"
