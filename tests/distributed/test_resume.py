"""Exact resume: whatever is killed and whenever, the run ends with the bits of an undisturbed one."""

import os
import random
import shlex
import signal
import time
from pathlib import Path

import pytest

from tests.helpers.jobs import BIN, finish, is_alive, llcg, members, ranks_of, start, start_llcg, wait_for_rounds
from tests.helpers.resuming import JOB, ROUNDS, assert_undisturbed, resumed_after
from tests.helpers.training import on_loopback

pytestmark = pytest.mark.alone


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The reference, on loopback: its bits are those of processes (test_equivalence.py)."""
    return on_loopback(tmp_path_factory.mktemp("undisturbed"), "run", *JOB)


def settings(undisturbed: Path, run_dir: Path) -> list[str]:
    """Of the same job in another folder."""
    return [*JOB, f"partition.root={undisturbed.parent}/parts", f"run_dir={run_dir}"]


TRIALS = [pytest.param(seed, marks=[pytest.mark.full] if seed > 1 else []) for seed in range(20)]


@pytest.mark.parametrize("seed", TRIALS)
def test_a_rank_killed_at_any_moment_changes_nothing(undisturbed: Path, tmp_path: Path, seed: int) -> None:
    """A random rank (trial 0: the server), at a random moment; every second trial while it writes a checkpoint."""
    chance = random.Random(seed)
    rank = 0 if seed == 0 else chance.randrange(3)
    run_dir = tmp_path / "run"
    job = start_llcg("train", *settings(undisturbed, run_dir))
    wait_for_rounds(run_dir, chance.randrange(2, ROUNDS // 2), job, interval=0.01)
    victim = ranks_of(job)[rank]
    if seed % 2:
        owner = "server" if rank == 0 else f"part{rank - 1}"
        end = time.monotonic() + 1
        while not (run_dir / "checkpoints" / f".{owner}.tmp").exists() and time.monotonic() < end:
            pass
    else:
        time.sleep(chance.random() * 0.05)
    done = (run_dir / "metrics.jsonl").read_bytes().count(b"\n")
    os.kill(victim, signal.SIGKILL)
    outcome = finish(job)
    assert outcome.code == 0, outcome.err
    assert_undisturbed(run_dir, undisturbed)
    first, again = resumed_after(run_dir)
    assert first == 0
    assert again >= done - 1, "more than one finished round was repeated"


@pytest.mark.parametrize("process_group", [False, pytest.param(True, marks=pytest.mark.full)])
def test_a_killed_launcher_leaves_no_writer_and_the_job_goes_on(
    undisturbed: Path, tmp_path: Path, process_group: bool
) -> None:
    run_dir = tmp_path / "run"
    command = [str(BIN / "llcg"), "train", *settings(undisturbed, run_dir)]
    killed = start(["setsid", *command] if process_group else command)
    wait_for_rounds(run_dir, 5, killed, interval=0.01)
    if process_group:
        os.killpg(os.getpgid(killed.pid), signal.SIGKILL)
    else:
        killed.kill()
    second = start(command)  # at once
    killed.wait(10)
    outcome = finish(second)
    assert outcome.code == 0, outcome.err
    assert_undisturbed(run_dir, undisturbed)
    first, again = resumed_after(run_dir)
    assert first == 0
    assert again >= 4, "more than one finished round was repeated"
    assert not members(killed)


def test_sigterm_leaves_a_complete_checkpoint_to_go_on_from(undisturbed: Path, tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    job = start_llcg("train", *settings(undisturbed, run_dir))
    wait_for_rounds(run_dir, 10, job, interval=0.01)
    job.terminate()
    stopped = time.monotonic()
    ended = finish(job, limit=30)
    assert ended.code == 143
    assert time.monotonic() - stopped < 20
    command = shlex.join(["llcg", "train", *settings(undisturbed, run_dir)])
    assert ended.only_error() == f"llcg: error: stopped by SIGTERM; go on with: {command}"
    outcome = llcg("train", *settings(undisturbed, run_dir), "resume=must")
    assert outcome.code == 0, outcome.err
    assert_undisturbed(run_dir, undisturbed)
    assert resumed_after(run_dir)[-1] >= 9
    again = llcg("train", *settings(undisturbed, run_dir))
    assert again.code == 0
    assert "finished run" in again.out
    assert_undisturbed(run_dir, undisturbed)


def test_under_nohup_a_job_outlives_its_terminal(undisturbed: Path, tmp_path: Path) -> None:
    job = start(["nohup", "llcg", "train", *settings(undisturbed, tmp_path / "run")])
    wait_for_rounds(tmp_path / "run", 2, job, interval=0.01)
    job.send_signal(signal.SIGHUP)
    outcome = finish(job)
    assert outcome.code == 0, outcome.err
    assert_undisturbed(tmp_path / "run", undisturbed)


@pytest.mark.parametrize("wakes", [True, pytest.param(False, marks=pytest.mark.full)])
def test_a_stopped_machine_is_named_and_the_others_end(undisturbed: Path, tmp_path: Path, wakes: bool) -> None:
    """One that never wakes is killed after the 30 s that torchrun gives it."""
    limit = 5
    endless = ["experiment=tiny", "num_rounds=100000", "evaluate.every=0", f"cluster.timeout={limit}"]
    job = start_llcg("train", *endless, f"partition.root={undisturbed.parent}/parts", f"run_dir={tmp_path}/run")
    wait_for_rounds(tmp_path / "run", 5, job)
    ranks = ranks_of(job)
    os.kill(ranks[2], signal.SIGSTOP)
    stopped = time.monotonic()
    while any(is_alive(ranks[rank]) for rank in (0, 1)) and time.monotonic() - stopped < 60:
        time.sleep(0.1)
    assert time.monotonic() - stopped < limit + 15
    if wakes:
        os.kill(ranks[2], signal.SIGCONT)
    outcome = finish(job, limit=60)
    assert outcome.code == 1
    assert "nothing heard from rank 2 (part 1) for" in outcome.err
