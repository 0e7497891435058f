"""The examples with nothing but the wheel, in a folder of their own, over real processes."""

import re
import shutil
from pathlib import Path

import pytest

from tests.helpers.jobs import REPOSITORY
from tests.helpers.wheel import run_installed

LAST_LINES = {
    "own_dataset": (r"test score (0\.\d+)", 0.25),
    "own_method": (r"mu=0\.1: test score (0\.\d+)", 0.1),
    "own_model": (r"Net with the best weights, test score (0\.\d+)", 0.1),
    "plain_pyg": (r"test accuracy (0\.\d+), recorded \1", 0.25),
    "pyg_data": (r"llcg: test score (0\.\d+), \d+ bytes\n +node +class +probability(?:\n +\d +\d +0\.\d+){3}", 0.2),
}
"""{example: (what it prints at the end, the score of a guess)}."""
CHEAP = ("own_method",)


def test_every_example_is_here() -> None:
    assert set(LAST_LINES) == {path.stem for path in (REPOSITORY / "examples").glob("*.py")}


@pytest.mark.parametrize(
    "name", [name if name in CHEAP else pytest.param(name, marks=pytest.mark.full) for name in LAST_LINES]
)
def test_it_runs_and_learns(installed: Path, tmp_path: Path, name: str) -> None:
    for example in (REPOSITORY / "examples").glob("*.py"):
        shutil.copy(example, tmp_path)
    outcome = run_installed(installed, tmp_path, "python", f"{name}.py")
    assert (outcome.code, outcome.err) == (0, "")
    pattern, guessed = LAST_LINES[name]
    said = re.search(rf"(?:^|\n){pattern}\n$", outcome.out)
    assert said, outcome.out[-500:]
    assert float(said[1]) > 2 * guessed
    assert list(tmp_path.glob("runs/*/logs/part1.log")), "trained without processes of their own"
