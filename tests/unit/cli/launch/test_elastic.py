"""The launcher of a host's ranks: what it says when it is stopped, and what it leaves of torch's signal handlers."""

import shlex
import signal
from pathlib import Path
from typing import Any

import pytest
from torch.distributed.elastic.multiprocessing import SignalException

from llcg_dist.cli.launch import elastic
from llcg_dist.config.compose import load_config
from llcg_dist.config.own_files import VARIABLE

CONFIG = load_config(["experiment=tiny"])


@pytest.mark.parametrize(
    ("overrides", "run_dir", "command"),
    [
        (["seed=1"], "runs/a", "llcg train seed=1 run_dir=runs/a"),
        (["run_dir=old", "dataset.name=a b"], "runs/b", "llcg train 'dataset.name=a b' run_dir=runs/b"),
    ],
)
def test_the_command_to_go_on_with(overrides: list[str], run_dir: str, command: str) -> None:
    assert elastic.resuming(overrides, Path(run_dir)) == command


def test_a_strange_run_dir_arrives_as_it_is() -> None:
    *_, last = shlex.split(elastic.resuming([], Path("runs/K=1,it's")))
    assert load_config([last]).run_dir == "runs/K=1,it's"


def test_going_on_names_the_users_presets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "/home/me/presets")
    command = "llcg train --config-dir /home/me/presets model=mine run_dir=runs/a"
    assert elastic.resuming(["model=mine"], Path("runs/a")) == command


def test_a_stop_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And leaves no handler of the agent's, which would raise in the last moment of the command."""

    def agent(*arguments: Any) -> None:
        signal.signal(signal.SIGINT, lambda number, frame: None)
        raise SignalException("", sigval=signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(elastic, "run_agent", agent)
    monkeypatch.setattr(elastic, "_entrypoint", lambda *arguments: ("true", []))
    code = elastic.launch(1, CONFIG.cluster, tmp_path / "run", ["seed=1"])
    assert code == 130
    assert signal.getsignal(signal.SIGINT) is before
    command = f"llcg train seed=1 run_dir={tmp_path}/run"
    assert capsys.readouterr().err == f"llcg: error: stopped by SIGINT; go on with: {command}\n"
