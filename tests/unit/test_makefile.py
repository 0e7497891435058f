"""`make setup` says so when it does not use the Python that it was given."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OUTSIDE_OF_MAKE = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
HERE = os.path.realpath(sys.executable)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project whose .venv is there and up to date."""
    for name in ("Makefile", "setup.cfg", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "pyvenv.cfg").write_text(f"version = 3.11.7\nexecutable = {HERE}\n")
    (tmp_path / ".venv" / ".installed").touch()
    return tmp_path


@pytest.mark.parametrize("python", ["nowhere", "/bin/true"])
def test_a_python_that_is_not_used_is_named(folder: Path, python: str) -> None:
    made = subprocess.run(
        ["make", "setup", f"PYTHON={python}"],
        env=OUTSIDE_OF_MAKE,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert made.returncode == 0
    assert made.stderr.startswith(f"make setup: PYTHON={python} is not used: .venv is made from {HERE}. ")
    assert len(made.stderr.splitlines()) == 1


@pytest.mark.parametrize("given", [[], [f"PYTHON={HERE}"], [f"PYTHON={sys.executable}"]])
def test_nothing_is_said_otherwise(folder: Path, given: list[str]) -> None:
    made = subprocess.run(
        ["make", "setup", *given], env=OUTSIDE_OF_MAKE, cwd=folder, capture_output=True, text=True, timeout=60
    )
    assert (made.returncode, made.stdout, made.stderr) == (0, "", "")
