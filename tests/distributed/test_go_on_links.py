"""cluster.on_loss=go_on on two hosts: a link that is cut and plugged in again, and one that is too slow."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.helpers.jobs import Job, finish, is_alive, ranks_of, wait_for_rounds, wait_until
from tests.helpers.netns import Host, hosts, multinode
from tests.helpers.run_files import model_bytes, rows
from tests.helpers.training import cut, on_loopback

pytestmark = [pytest.mark.alone, pytest.mark.full]

ROUNDS, MACHINES, SILENCE = 400, 3, 5
JOB = [
    *("experiment=tiny", f"cluster.num_machines={MACHINES}", f"num_rounds={ROUNDS}", "algorithm.K=2"),
    *("evaluate.every=50", "cluster.on_loss=go_on", f"cluster.timeout={SILENCE}"),
]
DEADLINE = "cluster.deadline=4"
FAR = 3
"""The rank on the other host, which has one machine."""


def cut_link(trial: "Trial") -> None:
    """Longer than cluster.timeout: its machine is lost, the others go on, and it returns when the link is back."""
    part = trial.far_part
    trial.other.unplug()
    wait_until(lambda: any(part in row.get("absent", []) for row in rows(trial.run_dir)), trial.job, limit=SILENCE + 30)
    trial.other.plug()


def short_cut(trial: "Trial") -> None:
    """Shorter than cluster.timeout: its machine is late, and stays the same."""
    part = str(trial.far_part)
    trial.other.unplug()
    wait_until(lambda: any(part in row.get("late", {}) for row in rows(trial.run_dir)), trial.job, limit=SILENCE)
    trial.other.plug()
    trial.spared.add(FAR)


def slow_link(trial: "Trial") -> None:
    """Rounds end without a machine whose messages take far longer than the others', which is not restarted."""
    part = str(trial.far_part)
    trial.other.limit(1)
    wait_until(lambda: any(part in row.get("late", {}) for row in rows(trial.run_dir)), trial.job, limit=60)
    trial.spared.add(FAR)


class Trial:
    """The head has the server and two machines, the other host one."""

    def __init__(self, folder: Path, head: Host, other: Host, rounds: int, *more: str) -> None:
        self.run_dir, self.other, self.job_settings = folder / "run", other, [*JOB, *more]
        settings = [*self.job_settings, f"partition.root={folder}/parts", f"run_dir={self.run_dir}"]
        here = {head: MACHINES, other: 1}
        self.jobs: list[Job] = [multinode(host, head, 2, count, *settings) for host, count in here.items()]
        self.job = self.jobs[0]
        wait_for_rounds(self.run_dir, rounds, *self.jobs)
        self.ranks = ranks_of(*self.jobs)
        self.spared = set(self.ranks) - {FAR}
        self.far_part = FAR - 1

    def require_spared(self) -> None:
        if self.job.poll() is None:
            assert all(is_alive(self.ranks[rank]) for rank in self.spared)

    def finish(self, folder: Path) -> None:
        outcomes = [finish(job, limit=180) for job in self.jobs]
        assert [outcome.code for outcome in outcomes] == [0, 0], outcomes
        assert [row["round"] for row in rows(self.run_dir)] == list(range(1, ROUNDS + 1))
        replayed = on_loopback(folder, "replayed", *self.job_settings, f"cluster.script={self.run_dir}/metrics.jsonl")
        assert model_bytes(replayed) == model_bytes(self.run_dir)


FAULTS: dict[Callable[[Trial], None], list[str]] = {
    cut_link: [],
    slow_link: [DEADLINE, "model.hidden=256"],
    short_cut: [DEADLINE],
}
"""And their settings: a model that is small crosses a slow link in no time."""


@pytest.mark.parametrize("seed", range(9))
def test_the_run_goes_on(tmp_path: Path, seed: int) -> None:
    cut(*JOB, f"partition.root={tmp_path}/parts")
    fault, settings = list(FAULTS.items())[seed % len(FAULTS)]
    with hosts(2) as (head, other):
        trial = Trial(tmp_path, head, other, random.Random(seed).randrange(5, 40), *settings)
        fault(trial)
        trial.require_spared()
        trial.finish(tmp_path)
