"""A figure of the paper from its sweep to its picture, tiny."""

import sys
from pathlib import Path

import pytest

from tests.helpers.jobs import REPOSITORY, finish, start


@pytest.mark.full
def test_a_figure_is_run_drawn_and_not_run_again(tmp_path: Path) -> None:
    tiny = ["num_rounds=2", "dataset.nodes=400", "dataset.classes=4", "algorithm.K=1", "cluster.num_machines=2"]
    places = ["--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "out"), f"partition.root={tmp_path}/parts"]
    command = [sys.executable, "-m", "studies.figures", "--only", "fig9_minibatch", *places, *tiny]
    first = finish(start(command, REPOSITORY))
    assert first.code == 0, first
    assert "6 of 6 jobs done" in first.out
    folder = tmp_path / "runs" / "fig9_minibatch"
    assert {path.parent.name for path in folder.glob("*/summary.json")} == {
        f"sampling.server_minibatch={kind},seed={seed}" for kind in ("uniform", "cut_edges") for seed in range(3)
    }
    picture = tmp_path / "out" / "fig9_minibatch.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert [row.split(" | ")[1:3] for row in first.out.splitlines() if row.startswith("| llcg |")] == [
        ["cut_edges", "3"],
        ["uniform", "3"],
    ]
    picture.unlink()
    again = finish(start(command, REPOSITORY))
    assert (again.code, again.out.count("already done")) == (0, 6), again
    assert picture.exists()
