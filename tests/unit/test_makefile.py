"""The Makefile, and those who call it: the hosted workflow, and the hooks before a commit."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
TARGETS = dict(re.findall(r"^([a-z-]+):[^=\n]*?##\s*(.+)$", (ROOT / "Makefile").read_text(), re.M))
"""{target: what it does}"""
WORKFLOW: dict[str, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
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


def commands(job: dict[str, Any]) -> list[str]:
    return [step["run"] for step in job["steps"] if "run" in step]


def targets(job: dict[str, Any]) -> Iterator[str]:
    for command in commands(job):
        found = re.fullmatch(r"make ([a-z-]+) PYTHON=python", command)
        if found:
            yield found[1]


def test_every_target_is_phony_and_explained() -> None:
    phony = re.search(r"^\.PHONY: (.+)$", (ROOT / "Makefile").read_text(), re.M)
    assert phony
    assert {*phony[1].split()} == {*TARGETS}


def test_the_workflow_runs_targets_of_the_makefile() -> None:
    jobs = WORKFLOW["jobs"]
    assert {target for job in jobs.values() for target in targets(job)} <= {*TARGETS}
    assert {name: [*targets(job)] for name, job in jobs.items()} == {
        "lint": ["lint"],
        "unit": ["test-unit"],
        "distributed": ["test-distributed"],
        "docs": ["docs"],
        "wheel": ["release-check"],
    }
    others = {command for job in jobs.values() for command in commands(job) if not command.startswith("make ")}
    assert others == {"bash .ci/packages"}


def test_the_workflow_tests_every_python_that_the_package_names() -> None:
    named = re.findall(r"Programming Language :: Python :: (3\.\d+)", (ROOT / "setup.cfg").read_text())
    jobs = WORKFLOW["jobs"]
    assert jobs["unit"]["strategy"]["matrix"]["python"] == named
    assert {*jobs["wheel"]["strategy"]["matrix"]["python"]} <= {*named}
    for job in jobs.values():
        assert job["timeout-minutes"] <= 90
        chosen = [step["with"]["python-version"] for step in job["steps"] if "setup-python" in step.get("uses", "")]
        assert chosen == (["${{ matrix.python }}"] if "strategy" in job else [] if "container" in job else ["3.11"])


def test_the_hooks_before_a_commit_are_those_of_make_lint() -> None:
    recipe = re.search(r"^lint:.*\n((?:\t.+\n)+)", (ROOT / "Makefile").read_text(), re.M)
    assert recipe
    lines = [line.strip().replace("$(BIN)", ".venv/bin") for line in recipe[1].splitlines()]
    repos = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert [hook["entry"] for repo in repos for hook in repo["hooks"]] == lines
    assert all(repo["repo"] == "local" for repo in repos)
