"""`llcg train -m`: killed and continued, with jobs that fail, side by side, searched, and stopped in order."""

import os
import shutil
import signal
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from tests.helpers.jobs import BIN, REPOSITORY, Outcome, finish, llcg, start, start_llcg, wait_until, wait_until_gone
from tests.helpers.run_files import rows, summary

TINY = ["experiment=tiny", "cluster.backend=loopback"]


def only_sweep(folder: Path) -> Path:
    (found,) = (folder / "runs" / "sweeps").iterdir()
    return found


def started(outcome: Outcome) -> set[str]:
    return {line.removesuffix(": started") for line in outcome.out.splitlines() if line.endswith(": started")}


@pytest.mark.full
def test_a_killed_sweep_of_twelve_runs_only_the_missing_jobs(tmp_path: Path) -> None:
    command = ["train", "-m", *TINY, "algorithm.K=1,2,4", "algorithm.S=0,1", "seed=0,1"]
    names = {f"algorithm.K={K},algorithm.S={S},seed={seed}" for K in (1, 2, 4) for S in (0, 1) for seed in (0, 1)}
    sweep = start(["setsid", str(BIN / "llcg"), *command], tmp_path)
    wait_until(lambda: len(list(tmp_path.glob("runs/sweeps/*/*/summary.json"))) >= 5, sweep, limit=150, interval=0.01)
    os.killpg(sweep.pid, signal.SIGKILL)
    sweep.wait()
    assert not wait_until_gone(sweep)
    folder = only_sweep(tmp_path)
    finished = list(folder.glob("*/summary.json"))
    assert 5 <= len(finished) < 12
    before = {path: path.stat().st_mtime_ns for path in finished}

    again = llcg(*command, cwd=tmp_path)
    assert again.code == 0, again
    assert only_sweep(tmp_path) == folder
    assert {path.parent.name for path in folder.glob("*/summary.json")} == names
    assert started(again) == names - {path.parent.name for path in finished}
    assert {path: path.stat().st_mtime_ns for path in finished} == before
    assert "12 of 12 jobs done" in again.out
    assert "cutting" not in again.out  # the parts were there
    overrides = OmegaConf.load(folder / "multirun.yaml").hydra.overrides.task
    assert "algorithm.K=1,2,4" in overrides


@pytest.mark.full
def test_failed_jobs_are_listed_and_stop_no_other(tmp_path: Path) -> None:
    """The first is a mistake, the second diverges, the third does well; half of them have no such method."""
    rates = ["train.local_lr=0,1e30,0.01", "train.optimizer=sgd"]
    swept = llcg("train", "-m", *TINY, "algorithm=none,psgd_pa", *rates, cwd=tmp_path)
    folder = only_sweep(tmp_path)
    assert swept.code == 1, swept
    assert [path.parent.name for path in folder.glob("*/summary.json")] == ["algorithm=psgd_pa,train.local_lr=0.01"]
    assert "1 of 6 jobs done" in swept.out
    reasons = dict(line.removeprefix("llcg: error: ").split(": ", 1) for line in swept.err.splitlines())
    assert len(reasons) == 5
    assert reasons["algorithm=psgd_pa,train.local_lr=0"] == "train.local_lr=0.0: must be a positive number"
    assert "parameters that are not finite" in reasons["algorithm=psgd_pa,train.local_lr=1e+30"]
    assert reasons["algorithm=none,train.local_lr=0.01"].startswith("algorithm=none: must be one of ")


def test_a_sweep_with_a_run_dir_is_refused(tmp_path: Path) -> None:
    refused = llcg("train", "-m", *TINY, "seed=0,1", "run_dir=here", cwd=tmp_path)
    assert refused.code == 2
    assert refused.err.startswith("llcg: error: run_dir=here: ")
    assert len(refused.err.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_options_of_ones_own_are_swept_as_they_are_set(tmp_path: Path) -> None:
    shutil.copy(REPOSITORY / "examples" / "own_method.py", tmp_path)
    own = ["algorithm=own", "algorithm.target=own_method.FedProx", "train.optimizer=torch.optim.AdamW"]
    options = ["algorithm.options.mu=0.1,0.2", "train.optimizer_options.eps=1e-7"]
    swept = llcg("train", "-m", *TINY, "num_rounds=1", *own, *options, cwd=tmp_path)
    assert swept.code == 0, swept
    jobs = sorted(path.parent.name for path in only_sweep(tmp_path).glob("*/summary.json"))
    assert jobs == ["algorithm.options.mu=0.1", "algorithm.options.mu=0.2"]


@pytest.mark.alone
@pytest.mark.full
def test_a_sweep_stops_in_order_and_goes_on_in_the_middle_of_a_job(tmp_path: Path) -> None:
    """With jobs of several processes each."""
    command = ["train", "-m", "experiment=tiny", "num_rounds=100", "seed=0,1"]
    sweep = start_llcg(*command, cwd=tmp_path)
    records = "runs/sweeps/*/seed=0/metrics.jsonl"
    wait_until(lambda: any(file.read_bytes().count(b"\n") >= 5 for file in tmp_path.glob(records)), sweep)
    sweep.terminate()
    stopped = finish(sweep, limit=40)
    assert stopped.code == 143
    assert "stopped by SIGTERM" in stopped.err
    folder = only_sweep(tmp_path)
    assert not list(folder.glob("*/summary.json"))
    assert not (folder / "seed=1").exists()
    again = llcg(*command, cwd=tmp_path)
    assert again.code == 0, again
    assert "going on after round" in (folder / "seed=0" / "logs" / "console.log").read_text()
    assert [row["round"] for row in rows(folder / "seed=0")] == list(range(1, 101))


@pytest.mark.full
def test_joblib_runs_the_jobs_of_a_search_side_by_side(tmp_path: Path) -> None:
    search = ["train", "-m", *TINY, "hydra/sweeper=optuna", "hydra/launcher=joblib", "hydra.launcher.n_jobs=2"]
    search += ["hydra.sweeper.n_jobs=2", "algorithm.K=range(1,9)", "train.local_lr=interval(0.001,0.1)"]
    searched = llcg(*search, "hydra.sweeper.n_trials=2", cwd=tmp_path)
    assert searched.code == 0, searched
    assert len(started(searched)) == 2
    folder = only_sweep(tmp_path)
    runs = list(folder.glob("*/summary.json"))
    assert {run.parent.name for run in runs} == started(searched)
    best = OmegaConf.load(folder / "optimization_results.yaml")
    assert best.best_value == max(summary(run.parent)["best_val_score"] for run in runs)


@pytest.mark.full
def test_a_search_goes_on_with_more_trials(tmp_path: Path) -> None:
    search = ["train", "-m", *TINY, "hydra/sweeper=optuna", "train.local_lr=interval(0.001,0.1)"]
    assert llcg(*search, "hydra.sweeper.n_trials=2", cwd=tmp_path).code == 0
    first = set(only_sweep(tmp_path).glob("*/summary.json"))
    more = llcg(*search, "hydra.sweeper.n_trials=4", cwd=tmp_path)
    assert more.code == 0, more
    assert more.out.count("already done") == len(first) == 2
    assert len(set(only_sweep(tmp_path).glob("*/summary.json")) - first) == 2
