"""cluster.on_loss=go_on: whatever happens to machines, the run finishes, the others stay the same processes, and its
records, replayed on loopback, lead to the same model."""

import contextlib
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.helpers.disks import small_disk
from tests.helpers.jobs import (
    BIN,
    Job,
    finish,
    is_alive,
    llcg,
    printed,
    ranks_of,
    start,
    start_llcg,
    started_at,
    wait_for_rounds,
    wait_until,
)
from tests.helpers.run_files import model_bytes, rows
from tests.helpers.stopping import lose
from tests.helpers.training import cut, on_loopback

pytestmark = pytest.mark.alone

ROUNDS, MACHINES, SILENCE = 120, 3, 6
JOB = [
    *("experiment=tiny", f"cluster.num_machines={MACHINES}", f"num_rounds={ROUNDS}", "algorithm.K=2"),
    *("evaluate.every=10", "cluster.on_loss=go_on"),
]
LIMITS = [f"cluster.timeout={SILENCE}", "cluster.max_restarts=2"]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("go_on")
    cut(*JOB, f"partition.root={folder}/parts")
    return folder


class Trial:
    """A job, what is done to it, and who must not notice."""

    def __init__(self, root: Path, run_dir: Path, chance: random.Random, *settings: str) -> None:
        self.root, self.run_dir, self.chance, self.job_settings = root, run_dir, chance, [*JOB, *settings]
        places = [f"partition.root={root}/parts", f"run_dir={run_dir}"]
        self.job: Job = start_llcg("train", *LIMITS, *self.job_settings, *places)
        wait_for_rounds(run_dir, chance.randrange(2, ROUNDS // 4), self.job, interval=0.01)
        self.ranks = ranks_of(self.job)
        self.times = {rank: started_at(pid) for rank, pid in self.ranks.items()}
        self.victims = chance.sample(range(1, 1 + MACHINES), 2)
        self.spared = set(self.ranks)
        time.sleep(chance.random() * 0.1)

    def signal(self, number: int, *victims: int) -> None:
        for rank in victims:
            os.kill(self.ranks[rank], number)
        if number != signal.SIGCONT:
            self.spared -= set(victims)

    def back(self, *victims: int) -> bool:
        found = ranks_of(self.job)
        return all(rank in found and found[rank] != self.ranks[rank] for rank in victims)

    def require_spared(self) -> None:
        """The others are the processes that they were, unless the run is over meanwhile."""
        for rank in self.spared:
            if is_alive(self.ranks[rank]):
                with contextlib.suppress(FileNotFoundError):  # it ends just now
                    assert started_at(self.ranks[rank]) == self.times[rank]
            else:
                assert (self.run_dir / "summary.json").exists(), f"rank {rank} did not survive: {printed(self.job)}"

    def finish(self) -> None:
        outcome = finish(self.job)
        assert outcome.code == 0, outcome.err
        assert [row["round"] for row in rows(self.run_dir)] == list(range(1, ROUNDS + 1))
        settings = [setting for setting in self.job_settings if not setting.startswith("checkpoint.dir")]
        script = f"cluster.script={self.run_dir}/metrics.jsonl"
        replayed = on_loopback(self.root, f"replayed_{self.run_dir.parent.name}", *settings, script)
        assert model_bytes(replayed) == model_bytes(self.run_dir)


def killed(trial: Trial) -> None:
    trial.signal(signal.SIGKILL, trial.victims[0])
    died = time.monotonic()
    wait_until(lambda: trial.back(trial.victims[0]), trial.job, limit=15)
    part = trial.victims[0] - 1
    wait_until(lambda: any(part in row.get("returned", []) for row in rows(trial.run_dir)), trial.job, limit=15)
    assert time.monotonic() - died < 15


def two_killed(trial: Trial) -> None:
    trial.signal(signal.SIGKILL, *trial.victims)
    wait_until(lambda: trial.back(*trial.victims), trial.job, limit=30)


def killed_again(trial: Trial) -> None:
    """As it comes back."""
    trial.signal(signal.SIGKILL, trial.victims[0])
    wait_until(lambda: trial.back(trial.victims[0]), trial.job, limit=30)
    time.sleep(trial.chance.random())
    again = ranks_of(trial.job).get(trial.victims[0])
    if again:
        os.kill(again, signal.SIGKILL)


def stopped_for_good(trial: Trial) -> None:
    trial.signal(signal.SIGSTOP, trial.victims[0])
    wait_until(lambda: trial.back(trial.victims[0]), trial.job, limit=SILENCE + 15)


def stopped_for_a_while(trial: Trial) -> None:
    """Shorter than cluster.timeout: nothing happens. Longer: it is not the same any more."""
    trial.signal(signal.SIGSTOP, trial.victims[0])
    time.sleep(trial.chance.choice([0.5, SILENCE + 1.5]))
    with contextlib.suppress(ProcessLookupError):  # its supervisor may have killed it just now
        trial.signal(signal.SIGCONT, trial.victims[0])


def late(trial: Trial) -> None:
    """Stopped for less than cluster.timeout, with a deadline: rounds end without it, and it is the same afterwards."""
    victim = trial.victims[0]
    trial.signal(signal.SIGSTOP, victim)
    try:
        wait_until(lambda: any(str(victim - 1) in row.get("late", {}) for row in rows(trial.run_dir)), trial.job)
    finally:
        trial.signal(signal.SIGCONT, victim)
    trial.spared.add(victim)


def checkpoints_lost(trial: Trial) -> None:
    lose(trial.run_dir, f"part{trial.victims[0] - 1}")
    trial.signal(signal.SIGKILL, trial.victims[0])


def server_killed(trial: Trial) -> None:
    """All begin again, at the last round that was saved; a machine may be away just then."""
    if trial.chance.random() < 0.5:
        trial.signal(signal.SIGKILL, trial.victims[0])
        time.sleep(trial.chance.random() * 0.3)
    trial.spared.clear()
    os.kill(trial.ranks[0], signal.SIGKILL)


def disk_full(trial: Trial) -> None:
    """No checkpoint can be written any more, and a machine dies."""
    wait_until(lambda: any("No space left" in " ".join(row["warnings"]) for row in rows(trial.run_dir)), trial.job)
    trial.signal(signal.SIGKILL, trial.victims[0])


FAULTS: list[Callable[[Trial], None]] = [
    *(killed, late, stopped_for_good, server_killed, two_killed, killed_again, stopped_for_a_while),
    *(checkpoints_lost, disk_full),
]
TRIALS = [pytest.param(seed, marks=[pytest.mark.full] if seed > 0 else []) for seed in range(91)]
"""Those of test_go_on_links.py make them a hundred."""


@pytest.mark.parametrize("seed", TRIALS)
def test_the_run_goes_on(root: Path, tmp_path: Path, seed: int) -> None:
    fault = FAULTS[seed % len(FAULTS)]
    with contextlib.ExitStack() as stack:
        settings = ["cluster.deadline=2", "cluster.timeout=60"] if fault is late else []
        if fault is disk_full:
            disk = stack.enter_context(small_disk(tmp_path / "disk", 64))
            settings += [f"checkpoint.dir={disk}/checkpoints"]
        trial = Trial(root, tmp_path / "run", random.Random(seed), *settings)
        fault(trial)
        trial.require_spared()
        trial.finish()


@pytest.mark.full
def test_too_few_machines_end_the_job_in_one_line(root: Path, tmp_path: Path) -> None:
    settings = [f"partition.root={root}/parts", f"run_dir={tmp_path}/run", f"cluster.min_machines={MACHINES}"]
    job = start_llcg("train", *JOB, *settings)
    wait_for_rounds(tmp_path / "run", 3, job)
    os.kill(ranks_of(job)[2], signal.SIGKILL)
    outcome = finish(job)
    assert outcome.code == 1
    assert "2 of 3 machines are left, cluster.min_machines=3: part 1: " in outcome.only_error()


@pytest.mark.full
def test_sigterm_ends_all_and_the_same_command_goes_on(root: Path, tmp_path: Path) -> None:
    command = ["train", *JOB, f"partition.root={root}/parts", f"run_dir={tmp_path}/run"]
    job = start_llcg(*command)
    wait_for_rounds(tmp_path / "run", 3, job)
    job.terminate()
    assert finish(job, limit=30).code == 143
    outcome = llcg(*command, "resume=must")
    assert outcome.code == 0, outcome.err
    undisturbed = on_loopback(root, "undisturbed", *JOB)
    assert model_bytes(tmp_path / "run") == model_bytes(undisturbed)


@pytest.mark.full
def test_under_torchrun_a_machine_returns_too(root: Path, tmp_path: Path) -> None:
    longer = [*JOB, f"num_rounds={6 * ROUNDS}"]  # a host with other work takes seconds to start a process
    overrides = [
        *longer,
        *LIMITS[:1],
        f"partition.root={root}/parts",
        f"run_dir={tmp_path}/run",
        "cluster.sealed=false",
    ]
    command = [str(BIN / "torchrun"), "--standalone", f"--nproc-per-node={1 + MACHINES}", "-m", "llcg_dist.train"]
    job = start([*command, *overrides])
    wait_for_rounds(tmp_path / "run", 5, job)
    os.kill(ranks_of(job)[2], signal.SIGKILL)
    outcome = finish(job)
    assert outcome.code == 0, outcome.err
    assert any(row.get("returned") == [1] for row in rows(tmp_path / "run"))
    replayed = on_loopback(root, "replayed_torchrun", *longer, f"cluster.script={tmp_path}/run/metrics.jsonl")
    assert model_bytes(replayed) == model_bytes(tmp_path / "run")
