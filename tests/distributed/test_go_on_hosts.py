"""cluster.on_loss=go_on on several hosts: one that is gone as a whole, and the same command on it, or on a new one."""

import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.jobs import (
    Job,
    Outcome,
    finish,
    kill_all,
    printed,
    ranks_of,
    started_at,
    wait_for_rounds,
    wait_until,
)
from tests.helpers.netns import Host, hosts, multinode
from tests.helpers.run_files import model_bytes, rows
from tests.helpers.training import cut, on_loopback

pytestmark = [pytest.mark.alone, pytest.mark.full, pytest.mark.timeout(900)]

ROUNDS, MACHINES, SILENCE = 600, 3, 20
JOB = [
    *("experiment=tiny", f"cluster.num_machines={MACHINES}", "algorithm.K=4"),
    *("evaluate.every=100", "cluster.on_loss=go_on", f"cluster.timeout={SILENCE}"),
]
SLOW_MBIT = 0.25
"""The link of the head while commands are given: a round then takes a fifth of a second, however fast the host is."""
LIMIT = 240
"""Seconds; an idle machine takes a few."""
HERE = [2, 1, 1]
"""Processes of each host; the first is the head, with the server and part 0, host 1 has part 1, and host 2 part 2."""


@pytest.fixture(scope="module")
def four() -> Iterator[list[Host]]:
    with hosts(4) as made:
        yield made


class Trial:
    """A job on three hosts, each with a disk of its own."""

    def __init__(self, folder: Path, made: list[Host]) -> None:
        self.folder, self.hosts, self.settings = folder, made, list[str]()
        self.started = list[Job]()
        self.run_dir = self.disk(0) / "run"

    def begin(self, *settings: str, rounds: int = ROUNDS) -> None:
        """Until some rounds are done. They take a while each, so that commands are given while the job runs."""
        self.hosts[0].limit(SLOW_MBIT)
        self.rounds, self.settings = rounds, [*JOB, f"num_rounds={rounds}", *settings]
        self.store = cut(*self.settings, f"partition.root={self.folder}/parts")
        for host, names in enumerate([["manifest.json", "global", "part0"], ["part1"], ["part2"]]):
            self.give(host, *names)
        self.jobs = [self.start(host, here) for host, here in enumerate(HERE)]
        wait_for_rounds(self.run_dir, 5, *self.jobs, limit=LIMIT)

    def disk(self, host: int) -> Path:
        return self.folder / f"disk{host}"

    def give(self, host: int, *names: str) -> None:
        """Copies these of the store to the host's disk."""
        target = self.disk(host) / "parts" / self.store.name
        target.mkdir(parents=True, exist_ok=True)
        for name in names:
            (shutil.copytree if (self.store / name).is_dir() else shutil.copy)(self.store / name, target / name)

    def start(self, host: int, here: int = 1, *settings: str) -> Job:
        places = [f"partition.root={self.disk(host)}/parts", f"run_dir={self.disk(host)}/run"]
        job = multinode(self.hosts[host], self.hosts[0], len(HERE), here, *self.settings, *places, *settings)
        self.started.append(job)
        return job

    def lose(self, host: int) -> None:
        """Its processes are gone, and the server goes on without them."""
        kill_all(self.jobs.pop(host))
        self.wait_for_row("absent", host)

    def wait_for_row(self, column: str, part: int) -> None:
        wait_until(lambda: any(part in row.get(column, []) for row in rows(self.run_dir)), *self.jobs, limit=LIMIT)

    def processes(self) -> dict[int, tuple[int, str]]:
        """{rank: (its process, when that was started)} of hosts that were never lost."""
        return {rank: (pid, started_at(pid)) for rank, pid in ranks_of(*self.jobs).items()}

    def finish(self, *jobs: Job) -> list[Outcome]:
        """All end well, and a replay leads to the same model."""
        self.hosts[0].unlimit()
        outcomes = [finish(job, limit=LIMIT) for job in jobs]
        assert [outcome.code for outcome in outcomes] == [0] * len(jobs), outcomes
        assert [row["round"] for row in rows(self.run_dir)] == list(range(1, self.rounds + 1))
        script = f"cluster.script={self.run_dir}/metrics.jsonl"
        replayed = on_loopback(self.folder, "replayed", *self.settings, script)
        assert model_bytes(replayed) == model_bytes(self.run_dir)
        return outcomes


@pytest.fixture
def trial(four: list[Host], tmp_path: Path) -> Iterator[Trial]:
    trial = Trial(tmp_path, four)
    yield trial
    trial.hosts[0].unlimit()
    for job in trial.started:
        kill_all(job)


def test_the_same_command_brings_a_host_back(trial: Trial) -> None:
    """Nobody else is started again."""
    trial.begin()
    trial.lose(2)
    before = trial.processes()
    again = trial.start(2)
    trial.wait_for_row("returned", 2)
    assert trial.processes() == before
    *_, last = trial.finish(*trial.jobs, again)
    assert "the job goes on without a machine of part 2: this host takes its place" in last.out
    assert not any(outcome.err for outcome in [*_, last])


def refuses(host: Job, message: str) -> None:
    outcome = finish(host, limit=LIMIT)
    assert outcome.code == 2, outcome
    assert message in outcome.only_error()


def test_a_new_host_with_a_copy_of_the_part(trial: Trial) -> None:
    """Without a copy, or with other settings, it is told so. Then it has the part, and the old host is not needed."""
    trial.begin("cluster.timeout=10", rounds=900)
    trial.lose(1)
    refuses(trial.start(3), "part 1 has no machine, and this host has no copy of it")
    trial.give(3, "part1")
    refuses(trial.start(3, 1, "seed=7"), "has seed 7 (rank 0: 0): start all ranks alike")
    before, new = trial.processes(), trial.start(3)
    trial.wait_for_row("returned", 1)
    refuses(trial.start(1), "the job runs, and none of its machines is gone")
    assert trial.processes() == before
    trial.finish(*trial.jobs, new)


def test_a_job_ends_promptly_while_a_host_is_away(trial: Trial) -> None:
    trial.begin(rounds=200)
    trial.lose(2)
    wait_for_rounds(trial.run_dir, 200, limit=LIMIT)
    ended = time.monotonic()
    trial.finish(*trial.jobs)
    assert time.monotonic() - ended < 60  # of which a replay takes some


def test_a_host_that_has_returned_takes_part_in_a_new_start(trial: Trial) -> None:
    """The server dies: all hosts meet, also the one whose ranks have joined without that."""
    trial.begin("cluster.max_restarts=2", "checkpoint.every=5")
    trial.lose(2)
    again = trial.start(2)
    trial.wait_for_row("returned", 2)
    before = trial.processes()
    server = next(pid for pid, _ in before.values() if is_server(pid, trial))
    os.kill(server, signal.SIGKILL)
    outcomes = trial.finish(*trial.jobs, again)
    assert "the job starts anew, with all hosts; this one joins them" in outcomes[-1].out
    assert len((trial.run_dir / "logs" / "server.log").read_text().split("going on after round")) == 3


def is_server(pid: int, trial: Trial) -> bool:
    """Whether the process has the server's log open."""
    folder = Path(f"/proc/{pid}/fd")
    return any(str(trial.run_dir / "logs" / "server.log") == os.readlink(file) for file in folder.iterdir())


def test_a_cut_host_and_one_in_its_place(trial: Trial) -> None:
    """The link of host 2 is cut, a new host takes its part, and the old one is alive when the link is back: it stays,
    without a part, and ends with the others."""
    trial.begin("cluster.timeout=10", rounds=900)
    trial.give(3, "part2")
    trial.hosts[2].unplug()
    try:
        trial.wait_for_row("absent", 2)
        new = trial.start(3)
        trial.wait_for_row("returned", 2)
    finally:
        trial.hosts[2].plug()
    outcomes = trial.finish(*trial.jobs, new)
    assert not outcomes[0].err, printed(trial.jobs[0])
