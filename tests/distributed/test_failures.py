"""Mistakes and crashes: the right exit code, one line that helps, nothing left behind."""

import os
import signal
import time
from pathlib import Path

import pytest

from tests.helpers.jobs import (
    REPOSITORY,
    Job,
    finish,
    llcg,
    ranks_of,
    start_llcg,
    torchrun,
    wait_for_rounds,
    wait_until_gone,
)
from tests.helpers.run_files import model_bytes
from tests.helpers.training import cut, on_loopback

LONG = ["experiment=tiny", "num_rounds=100000", "evaluate.every=0"]


@pytest.mark.parametrize(
    ("overrides", "names"),
    [
        (["algorithm.K=0"], "algorithm.K"),
        (["algorithm.S=-1"], "algorithm.S"),
        (["experiment=tiny", "cluster.num_machines=601"], "cluster.num_machines"),
        (["algorithm.Kay=3"], "algorithm.Kay"),
        (["num_rounds=many"], "num_rounds"),
        (["experiment=tiny", "dataset.train_fraction=0.01", "cluster.num_machines=40"], "no training node in part"),
    ],
)
def test_bad_settings_end_before_anything_starts(tmp_path: Path, overrides: list[str], names: str) -> None:
    outcome = llcg("train", *overrides, "partition.root=parts", "run_dir=run", cwd=tmp_path)
    assert outcome.code == 2
    assert names in outcome.only_error()
    assert list(tmp_path.iterdir()) == []


def test_a_run_directory_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text("{}\n")
    outcome = llcg("train", "experiment=tiny", f"run_dir={tmp_path}")
    assert outcome.code == 2
    assert str(tmp_path) in outcome.only_error()
    assert [path.name for path in tmp_path.iterdir()] == ["metrics.jsonl"]


def test_torchrun_with_the_wrong_number_of_processes_says_how_many(tmp_path: Path) -> None:
    outcome = torchrun(2, "-m", "llcg_dist.train", "experiment=tiny", "run_dir=run", cwd=tmp_path)
    assert outcome.code != 0
    assert "torchrun with 3 processes" in outcome.err
    assert outcome.out.count("warning: whoever reaches this job's ports can read and change what its ranks tell") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_mistake_that_only_the_ranks_can_see_is_not_tried_again(tmp_path: Path) -> None:
    job = ["experiment=tiny", "partition.root=parts", "run_dir=run", "cluster.max_restarts=3"]
    assert llcg("partition", *job, cwd=tmp_path).code == 0
    [features] = tmp_path.glob("parts/*/part1/features.npy")
    content = bytearray(features.read_bytes())
    content[-1] ^= 1
    features.write_bytes(content)
    outcome = llcg("train", *job, cwd=tmp_path)
    assert outcome.code == 2
    line = outcome.only_error()
    assert "part1/features.npy: its content is not what was written (sha256)" in line
    assert line.count("error") == 1


def started(tmp_path: Path) -> Job:
    """A long job whose ranks have begun to train."""
    job = start_llcg("train", *LONG, "partition.root=parts", "run_dir=run", cwd=tmp_path)
    wait_for_rounds(tmp_path / "run", 1, job)
    return job


@pytest.mark.alone
@pytest.mark.parametrize("rank", [pytest.param(0, marks=pytest.mark.full), 2])
def test_a_killed_rank_ends_the_job_and_is_named(tmp_path: Path, rank: int) -> None:
    job = started(tmp_path)
    os.kill(ranks_of(job)[rank], signal.SIGKILL)
    outcome = finish(job, limit=60)
    assert outcome.code == 1
    name = "rank 0 (server)" if rank == 0 else "rank 2 (part 1)"
    assert f"{name} was killed by SIGKILL" in outcome.only_error()


@pytest.mark.alone
@pytest.mark.parametrize(
    ("signal_", "code"), [pytest.param(signal.SIGINT, 130, marks=pytest.mark.full), (signal.SIGTERM, 143)]
)
def test_a_signal_ends_every_process(tmp_path: Path, signal_: signal.Signals, code: int) -> None:
    job = started(tmp_path)
    job.send_signal(signal_)
    outcome = finish(job, limit=60)
    assert outcome.code == code
    assert signal_.name in outcome.only_error()


@pytest.mark.alone
def test_ranks_do_not_outlive_a_killed_launcher(tmp_path: Path) -> None:
    job = started(tmp_path)
    ranks = ranks_of(job)
    assert sorted(ranks) == [0, 1, 2]
    for pid in ranks.values():  # forked, and yet they look like what they are
        assert b"\0-m\0llcg_dist.train\0experiment=tiny\0" in Path(f"/proc/{pid}/cmdline").read_bytes()
    job.kill()
    job.wait(10)
    assert wait_until_gone(job, limit=10) == []


@pytest.mark.alone
@pytest.mark.full
def test_a_server_that_loads_for_long_times_nobody_out(tmp_path: Path) -> None:
    """Longer than joining may take, and longer than a rank may be silent."""
    script = str(REPOSITORY / "tests" / "helpers" / "ranks" / "slow_server.py")
    places = [f"partition.root={tmp_path}/parts", f"run_dir={tmp_path}/run"]
    cut("experiment=tiny", *places)
    limits = ["cluster.join_timeout=40", "cluster.timeout=20"]
    started_at = time.monotonic()
    outcome = torchrun(3, script, "50", "experiment=tiny", *places, *limits)
    assert outcome.code == 0, outcome.err
    assert time.monotonic() - started_at > 50
    assert model_bytes(tmp_path / "run") == model_bytes(on_loopback(tmp_path, "undisturbed", "experiment=tiny"))
