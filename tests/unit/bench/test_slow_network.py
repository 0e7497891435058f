"""bench/slow_network.py: its settings, its records, and what it says without root."""

import os
import sys
from pathlib import Path

import pytest
from bench.slow_network import METHODS, SETTINGS, main, read_rows

from llcg_dist.config.compose import load_config
from llcg_dist.config.datasets import SyntheticConfig


def test_a_row_that_is_being_written_is_not_read(tmp_path: Path) -> None:
    assert read_rows(tmp_path) == []
    (tmp_path / "metrics.jsonl").write_text('{"round": 1}\n{"rou')
    assert read_rows(tmp_path) == [{"round": 1}]


@pytest.mark.parametrize("method", METHODS)
def test_all_methods_have_the_settings(method: str) -> None:
    """Reddit's width and the paper's model, 1.85 MB, whatever else is changed."""
    config = load_config([*SETTINGS, f"algorithm={method}"])
    assert isinstance(config.dataset, SyntheticConfig)
    assert (config.dataset.features, config.model.hidden, config.model.layers) == (602, 256, 3)
    assert (config.algorithm.name, config.evaluate.every) == (method, 1)


def test_without_root_it_says_so_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(sys, "argv", ["slow_network", "--out", str(tmp_path / "out")])
    assert main() == 2
    said = capsys.readouterr()
    assert said.err.count("\n") == 1
    assert "need root and iproute2" in said.err
    assert not (tmp_path / "out").exists()
