"""Mistakes and crashes: the right exit code, one line that helps, nothing left behind."""

import os
import signal
import time
from pathlib import Path

import pytest

from tests.helpers.jobs import Outcome, finish, llcg, members, rank_of, start_llcg, torchrun, wait_until_gone

LONG = ["experiment=tiny", "num_rounds=100000", "evaluate.every=0"]


def only_line(outcome: Outcome) -> str:
    lines = outcome.err.splitlines()
    assert len(lines) == 1, outcome.err
    return lines[0]


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
    assert names in only_line(outcome)
    assert list(tmp_path.iterdir()) == []


def test_a_run_directory_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text("{}\n")
    outcome = llcg("train", "experiment=tiny", f"run_dir={tmp_path}")
    assert outcome.code == 2
    assert str(tmp_path) in only_line(outcome)
    assert [path.name for path in tmp_path.iterdir()] == ["metrics.jsonl"]


def test_torchrun_with_the_wrong_number_of_processes_says_how_many(tmp_path: Path) -> None:
    outcome = torchrun(2, "-m", "llcg_dist.train", "experiment=tiny", "run_dir=run", cwd=tmp_path)
    assert outcome.code != 0
    assert "torchrun with 3 processes" in outcome.err
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
    line = only_line(outcome)
    assert "part1/features.npy: its content is not what was written (sha256)" in line
    assert line.count("error") == 1


def started(tmp_path: Path):  # noqa: ANN201
    """A long job whose ranks have begun to train."""
    process = start_llcg("train", *LONG, "partition.root=parts", "run_dir=run", cwd=tmp_path)
    end = time.monotonic() + 150
    metrics = tmp_path / "run" / "metrics.jsonl"
    while time.monotonic() < end and process.poll() is None:
        if metrics.exists() and metrics.stat().st_size > 0:
            return process
        time.sleep(0.1)
    raise AssertionError(f"the job did not start: {finish(process, limit=5)}")


@pytest.mark.parametrize("rank", [0, 2])
def test_a_killed_rank_ends_the_job_and_is_named(tmp_path: Path, rank: int) -> None:
    process = started(tmp_path)
    victim = next(pid for pid in members(process) if rank_of(pid) == rank)
    os.kill(victim, signal.SIGKILL)
    outcome = finish(process, limit=60)
    assert outcome.code == 1
    name = "rank 0 (server)" if rank == 0 else "rank 2 (part 1)"
    assert f"{name} was killed by SIGKILL" in only_line(outcome)


@pytest.mark.parametrize(("signal_", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_every_process(tmp_path: Path, signal_: signal.Signals, code: int) -> None:
    process = started(tmp_path)
    process.send_signal(signal_)
    outcome = finish(process, limit=60)
    assert outcome.code == code
    assert signal_.name in only_line(outcome)


def test_ranks_do_not_outlive_a_killed_launcher(tmp_path: Path) -> None:
    process = started(tmp_path)
    ranks = {rank: pid for pid in members(process) if (rank := rank_of(pid)) is not None}
    assert sorted(ranks) == [0, 1, 2]
    for pid in ranks.values():  # forked, and yet they look like what they are
        assert b"\0-m\0llcg_dist.train\0experiment=tiny\0" in Path(f"/proc/{pid}/cmdline").read_bytes()
    process.kill()
    process.wait(10)
    assert wait_until_gone(process, limit=10) == []


@pytest.mark.full
def test_a_server_that_loads_for_long_times_nobody_out(tmp_path: Path) -> None:
    """Longer than joining may take, and longer than a rank may be silent."""
    script = str(Path(__file__).with_name("slow_server.py"))
    limits = ["cluster.join_timeout=40", "cluster.timeout=20"]
    outcome = torchrun(3, script, "50", "experiment=tiny", "run_dir=run", *limits, cwd=tmp_path)
    assert outcome.code == 0, outcome.err
    assert (tmp_path / "run" / "model.pt").exists()
