"""The installed package, away from the checkout: help, launchers, the user's own presets and modules in every rank."""

import subprocess
from functools import partial
from pathlib import Path

import pytest
from omegaconf import OmegaConf

import llcg_dist
from tests.helpers.jobs import REPOSITORY
from tests.helpers.wheel import run_installed

# Kernels as plain Python, which takes less time here than to compile them for one more environment.
run = partial(run_installed, NUMBA_DISABLE_JIT="1")

MINE = """# @package _global_
# A job of mine.
defaults:
  - override /model: mine
num_rounds: 1
algorithm: {K: 1}
cluster: {num_machines: 2}
"""
PROBE = """
import os
open(f"imported_by_rank_{os.environ.get('RANK')}", "w").close()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A user's folder: two presets, and a module that stands in for a logger's library."""
    for file, text in (("model/mine.yaml", "name: sage\nhidden: 12\n"), ("experiment/mine.yaml", MINE)):
        (tmp_path / "presets" / file).parent.mkdir(parents=True)
        (tmp_path / "presets" / file).write_text(text)
    (tmp_path / "wandb.py").write_text(PROBE)
    return tmp_path


def test_help_and_launchers_are_in_the_wheel(installed: Path, tmp_path: Path) -> None:
    where = run_installed(
        installed, tmp_path, "python", "-c", "import llcg_dist as package; print(package.__file__)"
    ).out
    assert where.startswith(str(installed.parent)), "the checkout was found instead"
    version = run(installed, tmp_path, "llcg", "--version")
    assert (version.code, version.out, version.err) == (0, f"llcg_dist {llcg_dist.__version__}\n", "")
    page = run(installed, tmp_path, "llcg", "help", "graph")
    title = (REPOSITORY / "docs" / "guides" / "graph.md").read_text().splitlines()[0]
    assert (page.code, page.out.splitlines()[0], page.err) == (0, title, "")
    listed = run(installed, tmp_path, "python", "-m", "llcg_dist", "help").out
    topics = {line.split()[0].rpartition("/")[2] for line in listed.splitlines() if line.startswith("    ")}
    assert {path.stem for path in (REPOSITORY / "docs").rglob("*.md")} <= topics
    usage = run(installed, tmp_path, "llcg", "multinode", "--help")
    assert (usage.code, usage.err) == (0, "")
    assert usage.out.startswith("usage: llcg multinode --head ADDRESS")


def test_the_batch_script_calls_the_installed_python(installed: Path, folder: Path) -> None:
    options = ["--nodes=3", "-t", "1:00:00", "--config-dir", "presets"]
    shown = run_installed(
        installed, folder, "llcg", "slurm", "-", *options, "experiment=mine", "cluster.num_machines=8"
    )
    assert (shown.code, shown.err) == (0, "")
    lines = shown.out.splitlines()
    assert {"#SBATCH --nodes=3", "#SBATCH --time=1:00:00", "#SBATCH --cpus-per-task=3"} <= set(lines)
    assert f"export LLCG_CONF={folder}/presets" in lines
    run_it = f'exec {installed}/python -m llcg_dist slurm --run experiment=mine cluster.num_machines=8 "$@"'
    assert lines[-1] == run_it
    subprocess.run(["bash", "-n"], input=shown.out, text=True, check=True, timeout=10)
    outside = subprocess.run(["bash"], input=shown.out, capture_output=True, text=True, timeout=60, cwd=folder)
    assert (outside.returncode, outside.stdout) == (2, "")
    (line,) = outside.stderr.splitlines()
    assert "this is not a SLURM job" in line


@pytest.mark.full
def test_ranks_find_the_users_presets_and_modules(installed: Path, folder: Path) -> None:
    """A relative --config-dir, two machines; to go on, the run needs no folder of presets."""
    settings = ["dataset.nodes=300", "dataset.features=8", "logger=wandb", "run_dir=runs/a"]
    trained = run(installed, folder, "llcg", "train", "--config-dir=presets", "experiment=mine", *settings)
    assert trained.code == 0, trained.err
    assert (folder / "imported_by_rank_0").exists()
    recorded = OmegaConf.load(folder / "runs" / "a" / "config.yaml")
    assert (recorded.model.hidden, recorded.cluster.num_machines) == (12, 2)
    assert (folder / "runs" / "a" / "summary.json").exists()
    values = ["model.hidden=12", "num_rounds=2", "algorithm.K=1", "cluster.num_machines=2"]
    again = run(installed, folder, "python", "-m", "llcg_dist", "train", *values, *settings)
    assert again.code == 0, again.err
    assert "going on after round 1" in again.out


@pytest.mark.full
def test_a_sweep_finds_them_too(installed: Path, folder: Path) -> None:
    """Jobs are forked; with `llcg`, whose script does not lie in the current folder."""
    overrides = ["experiment=mine", "dataset.nodes=300", "logger=wandb", "cluster.backend=loopback", "seed=0,1"]
    swept = run(installed, folder, "llcg", "train", "-m", *overrides, LLCG_CONF="presets")
    assert swept.code == 0, swept.err
    assert (folder / "imported_by_rank_None").exists()
    (sweep,) = (folder / "runs" / "sweeps").iterdir()
    for seed in (0, 1):
        assert OmegaConf.load(sweep / f"seed={seed}" / "config.yaml").model.hidden == 12
