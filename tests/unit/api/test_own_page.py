"""Every command and every block of docs/guides/model.md works in a copy of examples/, on loopback and in one round."""

import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

import llcg_dist
from llcg_dist.config.own_files import find_own_files
from tests.helpers.jobs import REPOSITORY
from tests.helpers.run_files import summary
from tests.helpers.training import train_in_process

PAGE = (REPOSITORY / "docs" / "guides" / "model.md").read_text()
COMMANDS = re.findall(r"^    llcg train (.*)$", PAGE, re.MULTILINE)
QUICK = {"cluster.backend": "loopback", "num_rounds": 1, "algorithm.K": 1, "logger": "none", "partition": "random"}


@pytest.fixture(autouse=True)
def _examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy of the folder, with the presets that the page speaks of."""
    shutil.copytree(REPOSITORY / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path / "examples")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "examples"), *sys.path])
    monkeypatch.setenv("LLCG_CONF", "")
    preset = Path("presets", "experiment", "mine.yaml")
    preset.parent.mkdir(parents=True)
    preset.write_text("# @package _global_\nseed: 7\n")


@pytest.mark.parametrize("command", COMMANDS)
def test_its_commands(command: str) -> None:
    small = [] if "dataset=" in command else ["dataset.nodes=300"]
    settings = [f"{key}={value}" for key, value in QUICK.items()]
    train_in_process(*find_own_files(command.split()), *settings, *small, "run_dir=run")
    assert summary(Path("run"))["num_rounds"] == 1


def test_its_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    fit = llcg_dist.fit

    def quick_fit(*data: Any, **arguments: Any) -> llcg_dist.Run:
        return fit(*data, **(arguments | {"rounds": None, "overrides": arguments["overrides"] | QUICK}))

    monkeypatch.setattr(llcg_dist, "fit", quick_fit, raising=False)
    names: dict[str, Any] = {"__name__": "page"}
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(block, names)
    assert names["run"].summary["num_rounds"] == 1
    assert type(names["run"].model()) is names["Net"]
