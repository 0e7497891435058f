"""Exact resume: whatever is killed and whenever, the run ends with the bits of an undisturbed one."""

import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from llcg_dist import train
from llcg_dist.config.compose import load_config
from llcg_dist.data.partition import ensure_store
from llcg_dist.errors import TrainingError, UserError
from tests.helpers.jobs import BIN, finish, is_alive, llcg, members, rank_of, rows, start, start_llcg, summary

ROUNDS = 80
JOB = ["experiment=tiny", f"num_rounds={ROUNDS}", "algorithm.K=2", "cluster.max_restarts=3"]
TIMING = re.compile("seconds_|checkpoint_|warnings")


def alone(*overrides: str) -> None:
    torch.set_num_threads(1)
    train.run(load_config([*overrides, "cluster.backend=loopback"]), train.Rank())


def model(run_dir: Path) -> bytes:
    return (run_dir / "model.pt").read_bytes()


def timeless(run_dir: Path) -> list[dict]:
    return [{key: value for key, value in row.items() if not TIMING.match(key)} for row in rows(run_dir)]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The reference, on loopback: its bits are those of processes (test_equivalence)."""
    root = tmp_path_factory.mktemp("undisturbed")
    alone(*JOB, f"partition.root={root}/parts", f"run_dir={root}/run")
    return root


def wait_for_rows(process: subprocess.Popen[str], run_dir: Path, count: int, limit: float = 90) -> None:
    end = time.monotonic() + limit
    while time.monotonic() < end and process.poll() is None:
        if (run_dir / "metrics.jsonl").exists() and (run_dir / "metrics.jsonl").read_bytes().count(b"\n") >= count:
            return
        time.sleep(0.01)
    raise AssertionError(f"round {count} was not reached: {finish(process, limit=1)}")


def resumed_after(run_dir: Path) -> list[int]:
    log = (run_dir / "logs" / "server.log").read_text()
    return [int(found) for found in re.findall(r"going on after round (\d+)", log)]


def assert_undisturbed(run_dir: Path, undisturbed: Path) -> None:
    assert model(run_dir) == model(undisturbed / "run")
    assert (run_dir / "best.pt").read_bytes() == (undisturbed / "run" / "best.pt").read_bytes()
    assert timeless(run_dir) == timeless(undisturbed / "run")


def trials(count: int) -> list:
    """Two of them always, the rest in `make test-full`."""
    return [pytest.param(seed, marks=[pytest.mark.full] if seed > 1 else []) for seed in range(count)]


@pytest.mark.parametrize("seed", trials(20))
def test_a_rank_killed_at_any_moment_changes_nothing(undisturbed: Path, tmp_path: Path, seed: int) -> None:
    """A random rank (trial 0: the server), at a random moment; every second trial while it writes a checkpoint."""
    chance = random.Random(seed)
    rank = 0 if seed == 0 else chance.randrange(3)
    run_dir = tmp_path / "run"
    process = start_llcg("train", *JOB, f"partition.root={undisturbed}/parts", f"run_dir={run_dir}")
    wait_for_rows(process, run_dir, chance.randrange(2, ROUNDS // 2))
    victim = next(pid for pid in members(process) if rank_of(pid) == rank)
    if seed % 2:
        owner = "server" if rank == 0 else f"part{rank - 1}"
        end = time.monotonic() + 1
        while not (run_dir / "checkpoints" / f".{owner}.tmp").exists() and time.monotonic() < end:
            pass
    else:
        time.sleep(chance.random() * 0.05)
    done = len(rows_whole_lines(run_dir))
    os.kill(victim, signal.SIGKILL)
    outcome = finish(process)
    assert outcome.code == 0, outcome.err
    assert_undisturbed(run_dir, undisturbed)
    first, again = resumed_after(run_dir)
    assert first == 0
    assert again >= done - 1, "more than one finished round was repeated"


def rows_whole_lines(run_dir: Path) -> list[str]:
    return (run_dir / "metrics.jsonl").read_text().split("\n")[:-1]


@pytest.mark.parametrize("whole_group", [False, True])
def test_a_killed_launcher_leaves_no_writer_and_the_job_goes_on(
    undisturbed: Path, tmp_path: Path, whole_group: bool
) -> None:
    run_dir = tmp_path / "run"
    command = [str(BIN / "llcg"), "train", *JOB, f"partition.root={undisturbed}/parts", f"run_dir={run_dir}"]
    process = start(["setsid", *command] if whole_group else command)
    wait_for_rows(process, run_dir, 5)
    if whole_group:
        os.killpg(os.getpgid(process.pid), signal.SIGKILL)
    else:
        process.kill()
    second = start(command)  # at once
    process.wait(10)
    outcome = finish(second)
    assert outcome.code == 0, outcome.err
    assert_undisturbed(run_dir, undisturbed)
    assert len(resumed_after(run_dir)) == 2
    assert not members(process)


def test_sigterm_leaves_a_whole_checkpoint_to_go_on_from(undisturbed: Path, tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    settings = [*JOB, f"partition.root={undisturbed}/parts", f"run_dir={run_dir}"]
    process = start_llcg("train", *settings)
    wait_for_rows(process, run_dir, 10)
    process.terminate()
    started = time.monotonic()
    assert finish(process, limit=30).code == 143
    assert time.monotonic() - started < 20
    outcome = llcg("train", *settings, "resume=must")
    assert outcome.code == 0, outcome.err
    assert_undisturbed(run_dir, undisturbed)
    again = llcg("train", *settings)
    assert again.code == 0
    assert "finished run" in again.out
    assert_undisturbed(run_dir, undisturbed)


@pytest.mark.parametrize("wakes", [True, pytest.param(False, marks=pytest.mark.full)])
def test_a_stopped_machine_is_named_and_the_others_end(undisturbed: Path, tmp_path: Path, wakes: bool) -> None:
    """One that never wakes is killed after the 30 s that torchrun gives it."""
    limit = 5
    settings = ["experiment=tiny", "num_rounds=100000", "evaluate.every=0", f"cluster.timeout={limit}"]
    process = start_llcg("train", *settings, f"partition.root={undisturbed}/parts", f"run_dir={tmp_path}/run")
    wait_for_rows(process, tmp_path / "run", 5)
    ranks = {rank_of(pid): pid for pid in members(process)}
    os.kill(ranks[2], signal.SIGSTOP)
    started = time.monotonic()
    while any(is_alive(ranks[rank]) for rank in (0, 1)) and time.monotonic() - started < 60:
        time.sleep(0.1)
    assert time.monotonic() - started < limit + 15
    if wakes:
        os.kill(ranks[2], signal.SIGCONT)
    outcome = finish(process, limit=60)
    assert outcome.code == 1
    assert "nothing heard from rank 2 (part 1) for" in outcome.err


# In one process, where a crash is not needed: the same code decides where to go on.


def test_a_longer_run_goes_on_where_the_shorter_ended(undisturbed: Path, tmp_path: Path) -> None:
    parts = f"partition.root={undisturbed}/parts"
    settings = ["experiment=tiny", "algorithm=psgd_pa", parts]
    alone(*settings, "num_rounds=7", f"run_dir={tmp_path}/grown")
    alone(*settings, "num_rounds=12", f"run_dir={tmp_path}/grown")
    alone(*settings, "num_rounds=12", f"run_dir={tmp_path}/at_once")
    assert model(tmp_path / "grown") == model(tmp_path / "at_once")
    assert timeless(tmp_path / "grown") == timeless(tmp_path / "at_once")
    assert summary(tmp_path / "grown")["total_bytes"] == summary(tmp_path / "at_once")["total_bytes"]


def test_other_settings_are_refused_with_the_keys_that_differ(undisturbed: Path, tmp_path: Path) -> None:
    settings = ["experiment=tiny", f"partition.root={undisturbed}/parts", f"run_dir={tmp_path}/run"]
    alone(*settings)
    for changed, named in (
        ("algorithm.K=5", r"algorithm\.K \(2\.0 there, 5\.0 here\)"),
        ("num_rounds=2", "num_rounds"),
    ):
        with pytest.raises(UserError, match=named):
            alone(*settings, changed)
    alone(*settings, "cluster.threads=1", "cluster.timeout=7")  # where and how it runs may change
    with pytest.raises(UserError, match="resume=never"):
        alone(*settings, "resume=never")
    with pytest.raises(UserError, match="resume=must"):
        alone("experiment=tiny", f"partition.root={undisturbed}/parts", f"run_dir={tmp_path}/new", "resume=must")


def test_torn_checkpoints_are_passed_over(undisturbed: Path, tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    shutil.copytree(undisturbed / "run", run_dir)
    (run_dir / "summary.json").unlink()
    for path in (run_dir / "checkpoints").glob(f"*-r{ROUNDS:06d}-*"):
        path.write_bytes(path.read_bytes()[:-1])
    alone(*JOB, f"partition.root={undisturbed}/parts", f"run_dir={run_dir}")
    assert resumed_after(run_dir)[-1:] != [ROUNDS]
    assert_undisturbed(run_dir, undisturbed)


def test_only_the_checkpoints_that_are_kept_stay(undisturbed: Path) -> None:
    kept = sorted({path.name.split("-")[1] for path in (undisturbed / "run" / "checkpoints").iterdir()})
    assert kept[-1] == f"r{ROUNDS:06d}"
    assert 2 <= len(kept) <= 4  # two that are whole everywhere, and the two since of which that is not known yet


def test_a_full_disk_costs_checkpoints_not_the_run(undisturbed: Path, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)], capture_output=True).returncode:
        pytest.skip("this user may not mount a tmpfs")
    try:
        run_dir = tmp_path / "run"
        alone(*JOB, f"partition.root={undisturbed}/parts", f"run_dir={run_dir}", f"checkpoint.dir={disk}")
        assert_undisturbed(run_dir, undisturbed)
        told = [row for row in rows(run_dir) if any("No space left on device" in text for text in row["warnings"])]
        assert told
        whole = rows(run_dir)[-1]["checkpoint_round"]
        assert 0 < whole < ROUNDS
        (run_dir / "summary.json").unlink()
        alone(
            *JOB, f"partition.root={undisturbed}/parts", f"run_dir={run_dir}", f"checkpoint.dir={disk}", "resume=must"
        )
        assert_undisturbed(run_dir, undisturbed)
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def poisoned_parts(tmp_path: Path) -> list[str]:
    """A store in which part 1 has features so large that its loss overflows."""
    settings = ["experiment=tiny", "algorithm=psgd_pa", "train.optimizer=sgd", f"partition.root={tmp_path}/parts"]
    store, _ = ensure_store(load_config(settings))
    features = np.load(store / "part1" / "features.npy", mmap_mode="r+")
    features[:] = 1e38
    features.flush()
    return [*settings, "verify=sizes", "model.norm=none"]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
def test_a_machine_that_sends_nan_is_named(tmp_path: Path, dtype: str) -> None:
    with pytest.raises(TrainingError, match=r"part 1 sent parameters that are not finite in round 1 .*train.local_lr"):
        alone(*poisoned_parts(tmp_path), f"run_dir={tmp_path}/fail", f"algorithm.exchange_dtype={dtype}")


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_a_machine_that_sends_nan_can_be_skipped(tmp_path: Path, dtype: str) -> None:
    settings = [*poisoned_parts(tmp_path), f"algorithm.exchange_dtype={dtype}"]
    alone(*settings, "on_nonfinite=skip", f"run_dir={tmp_path}/skip")
    assert all(row["skipped_parts"] == [1] for row in rows(tmp_path / "skip"))
    state = torch.load(tmp_path / "skip" / "model.pt", weights_only=True)
    assert all(torch.isfinite(tensor).all() for tensor in state.values())


def fill(disk: Path) -> None:
    with (disk / "filler").open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(1024))


def test_a_run_that_cannot_write_its_result_fails_and_keeps_the_old_one(undisturbed: Path, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)], capture_output=True).returncode:
        pytest.skip("this user may not mount a tmpfs")
    settings = ["experiment=tiny", f"partition.root={undisturbed}/parts", f"run_dir={disk}/run", "checkpoint.keep=1"]
    try:
        alone(*settings)
        before = model(disk / "run"), json.loads((disk / "run" / "summary.json").read_text())
        fill(disk)
        with pytest.raises(OSError, match="No space"):
            alone(*settings, "num_rounds=9")
        assert (model(disk / "run"), json.loads((disk / "run" / "summary.json").read_text())) == before
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)
