"""Evaluation in a process of its own: scores and states of the server's own, failures that are told, and its end."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
import torch

from llcg_dist.config.compose import load_config
from llcg_dist.data import progress
from llcg_dist.data.store import read_shard
from llcg_dist.errors import TrainingError, UserError
from llcg_dist.job.evaluation_process import QUEUE, EvaluationProcess, EvaluationsBeside, Task
from llcg_dist.job.evaluations import EvaluationsHere
from llcg_dist.models import build_model
from llcg_dist.training.flat_vector import flatten
from tests.helpers.jobs import REPOSITORY, is_alive
from tests.helpers.training import cut

TINY = ["experiment=tiny", "partition=random", "evaluate.both_statistics=true"]


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Task:
    overrides = [*TINY, f"partition.root={tmp_path_factory.mktemp('parts')}"]
    config, store = load_config(overrides), cut(*overrides)
    graph = read_shard(store / "global").graph
    size = flatten(build_model(config.model, graph.num_features, graph.num_classes)).numel()
    return Task(config, store / "global", 1, None, size)


@pytest.fixture
def process() -> Iterator[EvaluationProcess]:
    one = EvaluationProcess()
    yield one
    one.close()


def models(task: Task, count: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    return [0.3 * torch.randn(task.size, generator=generator).abs() for _ in range(count)]


def test_scores_and_states_are_those_of_the_servers_own_process(task: Task, process: EvaluationProcess) -> None:
    here = EvaluationsHere(task.scorer(read_shard(task.folder).graph))
    beside = EvaluationsBeside(process, task)
    assert beside.take(wait=False) is None
    given = models(task, 5)
    for theta in given:
        here.submit(theta)
        while beside.full:
            compare_next(here, beside)
        beside.submit(theta)
        assert beside.busy
    while beside.busy:
        compare_next(here, beside)
    final, expected = beside.finished_model(given[-1]), here.finished_model(given[-1])
    assert all(torch.equal(final[name], expected[name]) for name in expected)
    first = here.finished_model(given[0])
    assert all(torch.equal(tensor, first[name]) for name, tensor in beside.finished_model(given[0]).items())
    assert beside.class_results(final) == here.class_results(final)
    assert (beside.peak_rss_mb or 0) > 50


def compare_next(here: EvaluationsHere, beside: EvaluationsBeside) -> None:
    ours, theirs = here.take(wait=True), beside.take(wait=True)
    assert ours is not None
    assert theirs is not None
    assert theirs.evaluation == ours.evaluation
    assert theirs.took.cpu > 0
    assert (theirs.best_state is None) == (ours.best_state is None)
    for name, tensor in (ours.best_state or {}).items():
        assert theirs.best_state is not None
        assert torch.equal(theirs.best_state[name], tensor)


def test_the_queue_is_bounded(task: Task, process: EvaluationProcess) -> None:
    beside = EvaluationsBeside(process, task)
    for theta in models(task, QUEUE):
        assert not beside.full
        beside.submit(theta)
    assert beside.full


def test_a_mistake_there_is_a_mistake_here(task: Task, process: EvaluationProcess, tmp_path: Path) -> None:
    config = load_config([*TINY, f"evaluate.scratch={tmp_path}/no/such/folder"])
    gone = Task(config, tmp_path / "nothing", 1, None, task.size)
    with pytest.raises(UserError, match="nothing"):
        EvaluationsBeside(process, gone)
    beside = EvaluationsBeside(process, task)  # it goes on
    process.send("score", QUEUE)
    with pytest.raises(TrainingError, match="^evaluation: IndexError"):
        beside.take(wait=True)


def test_a_process_that_is_killed_is_named(task: Task, process: EvaluationProcess) -> None:
    beside = EvaluationsBeside(process, task)
    os.kill(process._pid, signal.SIGKILL)
    with pytest.raises(TrainingError, match=r"was killed by signal 9 \(SIGKILL\)"):
        beside.finished_model(models(task, 1)[0])


def test_one_that_hangs_is_killed_at_the_end(process: EvaluationProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llcg_dist.job.evaluation_process._ENDS_WITHIN_SECONDS", 0.2)
    pid = process._pid
    os.kill(pid, signal.SIGSTOP)
    process.close()
    assert not is_alive(pid)


ORPHAN = """
import time
from llcg_dist.job.evaluation_process import EvaluationProcess
process = EvaluationProcess()  # kept: without its server's end it would end at once
print(process._pid, flush=True)
time.sleep(60)
"""


def test_it_does_not_outlive_its_parent() -> None:
    parent = subprocess.Popen([sys.executable, "-c", ORPHAN], stdout=subprocess.PIPE, text=True, cwd=REPOSITORY)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    end = time.monotonic() + 10
    command = Path(f"/proc/{child}/cmdline")
    while b"evaluation_process" not in command.read_bytes() and time.monotonic() < end:
        time.sleep(0.01)
    assert b"evaluation_process" in command.read_bytes()
    time.sleep(0.2)
    assert is_alive(child)
    parent.kill()
    parent.wait(10)
    while is_alive(child) and time.monotonic() < end:
        time.sleep(0.01)
    assert not is_alive(child)


def test_the_server_moves_on_while_the_process_does(task: Task, process: EvaluationProcess) -> None:
    """An evaluation may take longer than cluster.stall_timeout: its chunks count as the server's."""
    beside = EvaluationsBeside(process, task)
    before = progress.moves_in(process._progress)
    beside.submit(models(task, 1)[0])
    beside.take(wait=True)
    assert progress.moves_in(process._progress) > before


def test_waiting_for_a_process_that_works_is_progress_and_for_a_stuck_one_is_not(
    process: EvaluationProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = iter([False, False, False, True])
    moves = iter([7, 8, 9, 9])
    monkeypatch.setattr(process, "_link", Looked(process._link, lambda seconds: next(looks)))
    monkeypatch.setattr(progress, "moves_in", lambda memory: next(moves))
    before = progress.report().moves
    process._wait_for_answer()
    assert progress.report().moves - before == 2


class Looked:
    """A connection whose poll is the test's."""

    def __init__(self, link: Connection, poll: Callable[[float], bool]) -> None:
        self.poll, self.close = poll, link.close
