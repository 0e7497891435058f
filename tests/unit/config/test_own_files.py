"""The user's own presets and modules: --config-dir, LLCG_CONF, the current folder."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from llcg_dist.cli.main import run
from llcg_dist.cli.sweep.sweep import _compose, _parse
from llcg_dist.config.compose import load_config
from llcg_dist.config.own_files import VARIABLE, find_own_files
from llcg_dist.errors import UserError

PRESETS = {
    "model/mine.yaml": "# Mine.\nname: gcn\nhidden: 12\n",
    "experiment/small/x.yaml": "# @package _global_\ndefaults:\n  - override /model: mine\nnum_rounds: 7\n",
}


@pytest.fixture
def presets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of presets; the variable and the path of modules are restored afterwards."""
    for name, text in PRESETS.items():
        (tmp_path / "presets" / name).parent.mkdir(parents=True)
        (tmp_path / "presets" / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(VARIABLE, "")
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path / "presets"


@pytest.mark.parametrize("flag", [["--config-dir", "presets"], ["--config-dir=presets"], ["-cd", "presets"]])
def test_the_flag_is_taken_out_and_becomes_an_absolute_path(presets: Path, flag: list[str]) -> None:
    assert find_own_files(["train", *flag, "model=mine"]) == ["train", "model=mine"]
    assert os.environ[VARIABLE] == str(presets)
    os.chdir("/")
    config = load_config(["experiment=small/x"])
    assert (config.model.name, config.model.hidden, config.num_rounds) == ("gcn", 12, 7)


def test_a_relative_variable_becomes_absolute_and_flags_come_before_it(
    presets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "presets")
    (presets.parent / "more").mkdir()
    find_own_files(["--config-dir", "more"])
    find_own_files(["--config-dir", "more"])  # a rank does it once more
    assert os.environ[VARIABLE] == f"{presets.parent}/more:{presets}"
    assert load_config(["model=mine"]).model.hidden == 12


def test_a_sweep_composes_with_them(presets: Path) -> None:
    find_own_files(["--config-dir", "presets"])
    overrides = ["model=mine", "seed=0,1"]
    config, _ = _compose(overrides, _parse(overrides))
    assert config.model.hidden == 12


def test_help_and_messages_name_them(presets: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["help", "model", "--config-dir", "presets"]) == 0
    assert "model=mine       Mine.\n" in capsys.readouterr().out
    assert run(["train", "--config-dir", "presets", "model=mine", "--help"]) == 0
    shown = capsys.readouterr().out
    assert "|mine|" in shown
    assert "  model.hidden = 12 (int)\n" in shown
    assert run(["train", "--config-dir", "presets", "model=mina"]) == 2
    assert "did you mean mine?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--config-dir"], "--config-dir: must be followed by a folder of presets"),
        (["--config-dir", "nowhere"], "nowhere: no such folder of presets"),
        (["--config-dir", "presets/model"], ""),
    ],
)
def test_a_folder_that_is_missing(
    presets: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["train", *arguments, "--cfg", "job"]) == (2 if said else 0)
    assert said in capsys.readouterr().err


def test_a_preset_that_one_of_the_package_would_hide_is_refused(presets: Path) -> None:
    (presets / "model" / "gcn.yaml").write_text("name: gcn\nhidden: 3\n")
    find_own_files(["--config-dir", "presets"])
    with pytest.raises(UserError, match=r"presets/model/gcn.yaml: llcg_dist has a preset of this name"):
        load_config(["model=gcn"])


@pytest.mark.parametrize(("flags", "importable"), [([], True), (["-P"], False)])
def test_modules_of_the_current_folder_can_be_imported(tmp_path: Path, flags: list[str], importable: bool) -> None:
    """As `llcg` does it, whose script lies elsewhere; Python's own switch against it is respected."""
    (tmp_path / "elsewhere").mkdir()
    script = tmp_path / "elsewhere" / "script.py"
    script.write_text("from llcg_dist.config.own_files import find_own_files\nfind_own_files([])\nimport mine\n")
    (tmp_path / "mine.py").touch()
    done = subprocess.run([sys.executable, *flags, str(script)], cwd=tmp_path, capture_output=True, timeout=60)
    assert (done.returncode == 0) == importable
