"""Evaluation in a process of its own, in real jobs: the same records, whatever waits, stops or is killed."""

import os
import signal
from pathlib import Path

import pytest

from llcg_dist.job.evaluation_process import QUEUE
from tests.helpers.jobs import Job, finish, llcg, members, start_llcg, torchrun, wait_for_rounds, wait_until
from tests.helpers.resuming import assert_undisturbed
from tests.helpers.run_files import model_bytes, rows, summary
from tests.helpers.training import on_loopback

JOB = ["experiment=tiny", "partition=random", "num_rounds=40", "algorithm.K=2", "logger=none"]
STOPPING = [*JOB, "num_rounds=40", "train.local_lr=0.3", "early_stop.patience=3"]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return on_loopback(tmp_path_factory.mktemp("runs"), "loopback", *JOB)


def settings(undisturbed: Path, name: str) -> tuple[list[str], Path]:
    run_dir = undisturbed.parent / name
    return [f"partition.root={undisturbed.parent}/parts", f"run_dir={run_dir}"], run_dir


def evaluator(job: Job) -> int | None:
    """The process that evaluates, by the name it shows."""
    for pid in members(job):
        if b"llcg_dist.job.evaluation_process" in Path(f"/proc/{pid}/cmdline").read_bytes():
            return pid
    return None


def test_records_and_models_are_those_of_one_process(undisturbed: Path) -> None:
    folders, run_dir = settings(undisturbed, "beside")
    outcome = llcg("train", *JOB, *folders, "evaluate.process=on")
    assert outcome.code == 0, outcome.err
    assert_undisturbed(run_dir, undisturbed)
    assert (run_dir / "classes.json").read_bytes() == (undisturbed / "classes.json").read_bytes()
    assert summary(run_dir)["peak_rss_mb_evaluator"] > 50
    assert all(row["cpu_evaluate"] > 0 for row in rows(run_dir))


@pytest.mark.full
def test_under_plain_torchrun(undisturbed: Path) -> None:
    folders, run_dir = settings(undisturbed, "torchrun")
    outcome = torchrun(3, "-m", "llcg_dist.train", *JOB, *folders, "cluster.sealed=false")
    assert outcome.code == 0, outcome.err
    assert_undisturbed(run_dir, undisturbed)
    assert summary(run_dir)["peak_rss_mb_evaluator"] is not None


@pytest.mark.full
def test_rounds_whose_scores_are_not_there_survive_a_kill(undisturbed: Path) -> None:
    """The evaluator is stopped, rounds go on until its queue is full, and everything is killed: the rows of the rounds
    in the checkpoint are made when the run goes on."""
    folders, run_dir = settings(undisturbed, "killed")
    job = start_llcg("train", *JOB, *folders, "evaluate.process=on", "cluster.max_restarts=0")
    wait_for_rounds(run_dir, 2, job, interval=0.005)
    os.kill(evaluator(job) or 0, signal.SIGSTOP)

    def rounds_saved() -> int:
        return max(int(path.name[8:14]) for path in (run_dir / "checkpoints").glob("server-r*.pt"))

    wait_until(lambda: rounds_saved() == len(rows(run_dir)) + 1 + QUEUE, job, interval=0.01)
    assert len(rows(run_dir)) < 30
    job.kill()
    finish(job)
    outcome = llcg("train", *JOB, *folders, "evaluate.process=off", "resume=must")
    assert outcome.code == 0, outcome.err
    assert_undisturbed(run_dir, undisturbed)


def test_a_killed_evaluator_is_named_and_the_job_goes_on(undisturbed: Path) -> None:
    folders, run_dir = settings(undisturbed, "restarted")
    job = start_llcg("train", *JOB, *folders, "evaluate.process=on", "cluster.max_restarts=1")
    wait_for_rounds(run_dir, 2, job, interval=0.005)
    os.kill(evaluator(job) or 0, signal.SIGKILL)
    outcome = finish(job)
    assert outcome.code == 0, outcome.err
    assert_undisturbed(run_dir, undisturbed)
    assert "the process that evaluates was killed by signal 9 (SIGKILL)" in outcome.err + outcome.out


@pytest.mark.full
def test_auto_changes_which_rounds_are_scored_and_nothing_else(undisturbed: Path) -> None:
    folders, run_dir = settings(undisturbed, "auto")
    outcome = llcg("train", *JOB, *folders, "evaluate.process=on", "evaluate.every=auto")
    assert outcome.code == 0, outcome.err
    assert model_bytes(run_dir) == model_bytes(undisturbed)
    expected = {row["round"]: row["val_score"] for row in rows(undisturbed)}
    scored = {row["round"]: row["val_score"] for row in rows(run_dir) if row["val_score"] is not None}
    assert 40 in scored
    assert scored == {round_: expected[round_] for round_ in scored}


@pytest.mark.full
def test_early_stopping_ends_at_the_same_round(undisturbed: Path) -> None:
    alone = on_loopback(undisturbed.parent, "stops", *STOPPING)
    folders, run_dir = settings(undisturbed, "stops_beside")
    outcome = llcg("train", *STOPPING, *folders, "evaluate.process=on")
    assert outcome.code == 0, outcome.err
    assert_undisturbed(run_dir, alone)
    assert summary(run_dir)["stop_reason"] == summary(alone)["stop_reason"]
