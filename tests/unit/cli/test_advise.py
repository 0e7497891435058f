"""`llcg advise` on a small graph, in this process: an answer in JSON, a preset, and nothing left running or behind."""

import json
import tempfile
from pathlib import Path

import pytest

from llcg_dist.cli.main import run
from llcg_dist.config.own_files import VARIABLE

SMALL = ["experiment=tiny", "cluster.num_machines=2"]


def test_a_pilot_from_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "")  # --config-dir below sets it
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "pilots"))
    (tmp_path / "pilots").mkdir()
    preset = tmp_path / "conf" / "experiment" / "advised.yaml"
    options = ["--seconds=0.1", "--json", "--write", str(preset)]
    assert run(["advise", *options, *SMALL, f"partition.root={tmp_path}/parts"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [candidate["rounds"] for candidate in found["candidates"]] == [4, 4, 4, 4, 4]
    assert "partition.balance=labels" in found["candidates"][-1]["overrides"]
    assert all(candidate["seconds_a_round"] > 0 for candidate in found["candidates"])
    assert found["candidates"][-1]["bytes_a_round"] > 0
    assert found["parts"]["LLCG"]["cut_share"] > 0.3
    assert 0 <= found["alignment"]["LLCG"] <= 1
    assert found["gradient_noise_scale"]["start"] > 0
    assert list((tmp_path / "pilots").glob("llcg_*")) == []
    settings = ["--config-dir", str(tmp_path / "conf"), "experiment=advised", "--cfg", "job", "--package", "algorithm"]
    assert run(["train", *settings]) == 0
    assert f"name: {found['settings']['algorithm']}" in capsys.readouterr().out


def test_steps_and_parts_of_the_users_choice_are_the_only_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = ["partition=random", "algorithm.K=3", f"partition.root={tmp_path}/parts"]
    assert run(["advise", "--seconds=0.1", "--json", *SMALL, *chosen]) == 0
    assert [way["name"] for way in json.loads(capsys.readouterr().out)["candidates"]][2:] == ["LLCG"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["algorithm=llcg"], "algorithm=llcg: the method is what llcg advise finds out"),
        (["--seconds=0"], "--seconds 0: must be a positive number"),
        (["--secondz=1"], "--secondz=1"),
        (["cluster.num_machines=0"], "cluster.num_machines=0"),
        (["--write=/proc/no/file.yaml"], "--write=/proc/no: cannot make this folder"),
        (["--write=/"], "--write /: is a folder; name a file in it"),
    ],
)
def test_mistakes_are_one_line(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["advise", *arguments]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


def test_a_graph_without_validation_nodes_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All pilots had 0 % there, and one of them was advised."""
    settings = [*SMALL, "dataset.train_fraction=1", "dataset.val_fraction=0", f"partition.root={tmp_path}/parts"]
    assert run(["advise", "--seconds=0.1", *settings]) == 2
    assert "dataset=synthetic: without validation nodes there is no score" in capsys.readouterr().err
