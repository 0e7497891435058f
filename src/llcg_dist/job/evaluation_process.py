"""Evaluation beside the rounds: a process of the server's host, which maps the graph and scores the models it is given.

It is forked while its parent still has one thread and no connections: a lock, a socket or a pool of threads would not
outlive the fork well. Models go over in shared memory, a bounded number of them, and scores come back through a pipe.
It holds no lock of the run, and the kernel ends it with its parent.
"""

import logging
import mmap
import multiprocessing
import os
import pickle
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import reduction
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from llcg_dist.config.schema import Config, Verify
from llcg_dist.data import progress
from llcg_dist.data.child_process import die_with_parent
from llcg_dist.data.graph import Graph
from llcg_dist.data.store import read_shard
from llcg_dist.errors import TrainingError, UserError
from llcg_dist.job.forked_process import show_command_line
from llcg_dist.job.machine import peak_rss_mb
from llcg_dist.models import build_model
from llcg_dist.training.evaluation import EvaluationSettings, Evaluator
from llcg_dist.training.scorer import Scored, Scorer

log = logging.getLogger(__name__)

QUEUE = 2
"""Models that may be there at a time: one is evaluated, one waits. Rounds wait where another comes."""
_ENDS_WITHIN_SECONDS = 10
_LOOK_SECONDS = 0.5
"""How often the server looks whether the process moves on while it waits for an answer."""


@dataclass(frozen=True)
class Task:
    """What is evaluated: models of these settings on the graph in this folder."""

    config: Config
    folder: Path
    threads: int
    best: float | None
    """The best validation score so far."""
    size: int
    """Parameters of a model."""
    device: str = "cpu"
    """A GPU must not be in use before the process is forked; each of the two then wakes its driver by itself."""

    @property
    def _settings(self) -> EvaluationSettings:
        return EvaluationSettings.of(self.config, self.threads, self.device)

    def scorer(self, graph: Graph) -> Scorer:
        model = build_model(self.config.model, graph.num_features, graph.num_classes)
        return Scorer(Evaluator(graph, model, self._settings), self.best)


@dataclass(frozen=True)
class _Failure:
    """Crosses instead of an answer."""

    error: Exception
    trace: str


class EvaluationProcess:
    """The server's end of it."""

    def __init__(self) -> None:
        self._link, theirs = multiprocessing.Pipe()
        self._progress = mmap.mmap(-1, mmap.PAGESIZE)
        self._pid = os.fork()
        if self._pid == 0:
            self._link.close()
            progress.share(self._progress)
            _live(theirs)
        theirs.close()

    def begin(self, task: Task) -> Tensor:
        """From here on it evaluates models of this task; [QUEUE, n]: the memory that they go over in."""
        memory = os.memfd_create("llcg-models")
        os.truncate(memory, QUEUE * task.size * torch.float32.itemsize)
        self.send("begin", task)
        reduction.send_handle(self._link, memory, self._pid)
        slots = _slots(memory, task.size)
        self.receive()
        return slots

    def send(self, request: str, *arguments: Any) -> None:
        """Asks for what the method of this name in _Evaluating answers."""
        try:
            self._link.send_bytes(pickle.dumps((request, arguments)))  # as bytes: torch would share tensors its own way
        except OSError:
            raise self._ended() from None

    def has_answered(self) -> bool:
        return self._link.poll()

    def receive(self) -> Any:
        """The next answer, in the order of the requests; raises what went wrong there."""
        try:
            self._wait_for_answer()
            answer = pickle.loads(self._link.recv_bytes())
        except (OSError, EOFError):
            raise self._ended() from None
        if isinstance(answer, _Failure):
            log.error("evaluation failed: %s", answer.trace)
            raise answer.error
        return answer

    def _wait_for_answer(self) -> None:
        """The server moves on while this process does: an evaluation may take hours, a chunk of it may not."""
        seen = progress.moves_in(self._progress)
        while not self._link.poll(_LOOK_SECONDS):
            moves = progress.moves_in(self._progress)
            if moves != seen:
                progress.advance()
            seen = moves

    def _ended(self) -> TrainingError:
        _, status = os.waitpid(self._pid, 0)
        self._pid = 0
        code = os.waitstatus_to_exitcode(status)
        how = f"was killed by signal {-code} ({signal.Signals(-code).name})" if code < 0 else f"ended with code {code}"
        return TrainingError(f"the process that evaluates {how}; evaluate.process=off does without it")

    def close(self) -> None:
        """It ends when it sees that nobody will ask any more; one that does not is killed."""
        self._link.close()
        end = time.monotonic() + _ENDS_WITHIN_SECONDS
        while self._pid and os.waitpid(self._pid, os.WNOHANG)[0] == 0:
            if time.monotonic() > end:
                os.kill(self._pid, signal.SIGKILL)
            time.sleep(0.005)
        self._pid = 0


class EvaluationsBeside:
    """Evaluations (job/evaluations.py) in a process of their own."""

    beside = True

    def __init__(self, process: EvaluationProcess, task: Task) -> None:
        self._process, self._slots = process, process.begin(task)
        self._submitted = self._taken = 0
        self._last: Tensor | None = None
        self.peak_rss_mb: float | None = None

    @property
    def busy(self) -> bool:
        return self._taken < self._submitted

    @property
    def full(self) -> bool:
        return self._submitted - self._taken == QUEUE

    def submit(self, theta: Tensor) -> None:
        slot = self._submitted % QUEUE
        self._slots[slot].copy_(theta)
        self._process.send("score", slot)
        self._submitted, self._last = self._submitted + 1, theta

    def take(self, wait: bool) -> Scored | None:
        if not wait and not self._process.has_answered():
            return None
        self._taken += 1
        return self._process.receive()

    def finished_model(self, theta: Tensor) -> dict[str, Tensor]:
        if self._last is not theta:
            self.submit(theta)
            self.take(wait=True)
        self._process.send("state_dict")
        return self._process.receive()

    def class_results(self, state_dict: dict[str, Tensor]) -> dict[str, Any]:
        self._process.send("class_results", state_dict)
        results, self.peak_rss_mb = self._process.receive()
        return results


class _Evaluating:
    """What the process answers; each method is a request."""

    def __init__(self, link: Connection) -> None:
        self._link = link

    def begin(self, task: Task) -> None:
        self._slots = _slots(reduction.recv_handle(self._link), task.size)
        self._scorer = task.scorer(read_shard(task.folder, Verify.sizes).graph)  # the server has verified it

    def score(self, slot: int) -> Scored:
        return self._scorer.score(self._slots[slot])

    def state_dict(self) -> dict[str, Tensor]:
        return self._scorer.evaluator.state_dict()

    def class_results(self, state_dict: dict[str, Tensor]) -> tuple[dict[str, Any], float]:
        return self._scorer.evaluator.class_results(state_dict), peak_rss_mb()


def _live(link: Connection) -> None:
    """The life of the process; it never returns."""
    code = 1
    try:
        die_with_parent()
        for signal_ in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
            signal.signal(signal_, signal.SIG_IGN)  # the server decides when it ends
        environment = {name: value for name, value in os.environ.items() if name not in ("RANK", "LOCAL_RANK")}
        show_command_line([sys.executable, "-m", "llcg_dist.job.evaluation_process"], environment)
        evaluating = _Evaluating(link)
        while True:
            request, arguments = pickle.loads(link.recv_bytes())
            link.send_bytes(pickle.dumps(_answer(getattr(evaluating, request), arguments)))
    except (EOFError, BrokenPipeError):
        code = 0  # the server is gone, or needs nothing more
    finally:
        os._exit(code)


def _answer(request: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    try:
        return request(*arguments)
    except Exception as error:
        known = isinstance(error, UserError | TrainingError)
        told = error if known else TrainingError(f"evaluation: {type(error).__name__}: {error}")
        return _Failure(told, traceback.format_exc())


def _slots(memory: int, size: int) -> Tensor:
    """[QUEUE, size] float32 over the shared memory of this descriptor, which is closed."""
    shared = mmap.mmap(memory, QUEUE * size * torch.float32.itemsize)
    os.close(memory)
    return torch.frombuffer(shared, dtype=torch.float32).view(QUEUE, size)
