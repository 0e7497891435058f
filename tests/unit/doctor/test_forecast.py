"""`llcg doctor --stages`: a table or JSON of what is still to come, and nothing is built."""

import json
from pathlib import Path
from typing import Any

import pytest

from llcg_dist.cli import doctor as command
from llcg_dist.cli.main import run
from llcg_dist.doctor.forecast import Forecast, existing_folder
from llcg_dist.doctor.stages import CUT, INGEST, StageCost
from llcg_dist.doctor.training_stages import EVALUATE, TRAIN
from tests.helpers.stage_facts import SIZE

TINY = ["experiment=tiny", "partition=random", "partition.root=parts", "cluster.num_machines=2"]


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def _predicts_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def instantly(*arguments: Any, **settings: Any) -> Forecast:
        large = StageCost(1, 10**15, 0, 10**15)
        return Forecast(SIZE, "metis", 10**9, {CUT: large, TRAIN: StageCost(1, 1, 1), EVALUATE: StageCost(1, 1, 1)})

    monkeypatch.setattr(command, "forecast", instantly)


def test_before_the_parts_are_there_and_after(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--stages", *TINY]) == 0
    shown = capsys.readouterr().out
    for stage in ("ingest", "cut (random)", "write the parts", "train", "a machine", "an evaluation", "predict"):
        assert f"\n{stage}" in shown or f"\n  {stage}" in shown
    assert "ok    the largest stage needs" in shown
    assert list(tmp_path.iterdir()) == []
    assert run(["partition", *TINY]) == 0
    capsys.readouterr()
    assert run(["doctor", "--stages", "--json", *TINY]) == 0
    found = json.loads(capsys.readouterr().out)
    assert INGEST not in found["stages"]
    assert found["stages"][TRAIN]["seconds"] > 0
    assert found["nodes"] > 0


@pytest.mark.usefixtures("_predicts_at_once")
def test_what_does_not_fit_is_a_warning_and_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--stages", *TINY]) == 0
    shown = capsys.readouterr().out
    assert "warn  cut: needs about 1,000,000 GB of memory" in shown
    assert "partition=stream" in shown
    assert "warn  cut: needs about 1,000,000 GB of disk" in shown


@pytest.mark.usefixtures("_predicts_at_once")
def test_a_large_graph_is_predicted_before_its_parts_are_built(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["doctor", *TINY]) == 0
    assert "stages of" not in capsys.readouterr().out
    monkeypatch.setattr(command, "LARGE_ENTRIES", 1)
    assert run(["doctor", *TINY, "partition.root=others"]) == 0
    shown = capsys.readouterr().out
    assert shown.index("stages of") < shown.index("loading dataset")
    assert run(["doctor", *TINY, "partition.root=others"]) == 0
    assert "stages of" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["--stages", "--ranks-here=1"], "--ranks-here=1"),
        (["--json"], "--json"),
        (["--stages", "algorithm.K=0"], "algorithm.K"),
        (["--stages", "dataset=ogbn-arxiv"], "llcg partition"),
    ],
)
def test_a_mistake_is_one_line(arguments: list[str], names: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert names in line


def test_the_disk_is_that_of_the_nearest_folder(tmp_path: Path) -> None:
    assert existing_folder(tmp_path / "not" / "yet") == tmp_path
    assert existing_folder(Path("not/yet")) == tmp_path
