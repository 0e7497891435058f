"""A local machine: one part of the graph, and an answer to every request of the server."""

import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from llcg_dist.algorithms.base import Algorithm
from llcg_dist.comm.error_feedback import MachineCompressor
from llcg_dist.comm.messages import Finish, Gradient, Measure, Message, Restore, Restored, Train, Trained, TrainStats
from llcg_dist.comm.remote_rows import FeatureTraffic
from llcg_dist.data import progress
from llcg_dist.errors import ProtocolError
from llcg_dist.job.checkpoint import CheckpointWriter
from llcg_dist.stopwatch import Elapsed, now
from llcg_dist.training.diagnostics import LocalGradient
from llcg_dist.training.flat_vector import is_finite
from llcg_dist.training.trainer import Trainer

log = logging.getLogger(__name__)


class MachineCheckpoints:
    """Saves what a machine needs to resume: the state of its optimiser and of its method, the error feedback of its
    messages, and BatchNorm's statistics, which stay its own where the model is not sent every round."""

    def __init__(
        self, writer: CheckpointWriter, algorithm: Algorithm, trainer: Trainer, compressor: MachineCompressor
    ) -> None:
        self.writer, self._algorithm, self._trainer, self._compressor = writer, algorithm, trainer, compressor
        self.lost = False
        """The run goes on from a round of which this machine has no checkpoint."""

    def load(self, saved: dict[str, Any]) -> None:
        self._trainer.load_optimizer_state(saved["optimizer"])
        self._compressor.load_state(saved["exchange"])
        self._trainer.saved_statistics = saved["statistics"]
        self._trainer.load_buffers(saved.get("buffers", {}))
        self._algorithm.load_state_dict(saved.get("method", {}))

    def save(self, round_: int) -> None:
        self.writer.save(round_, self._state)

    def restore(self, round_: int, shared: Sequence[Tensor]) -> None:
        """Takes the state that the server shares with all machines. One that had lost its own saves what it has now as
        the round that the run goes on from, and nothing else counts as that: if the run is stopped, the next start
        finds all ranks alike."""
        self._algorithm.load_shared_state(shared, self._trainer)
        self._compressor.load_shared_state(shared)
        if self.lost:
            self.writer.restart_at(round_, self._state)
            self.lost = False

    def finish(self, durable_round: int) -> None:
        """After the last round: waits for its file, and removes the last ones too many."""
        self.writer.prune(durable_round)
        self.writer.finish()

    def _state(self) -> dict[str, Any]:
        return {
            "optimizer": self._trainer.optimizer_state(),
            "exchange": self._compressor.state(),
            "statistics": self._trainer.theta()[self._trainer.statistics],
            "buffers": self._trainer.buffers(),
            "method": self._algorithm.state_dict(),
        }


class Machine:
    """Answers requests: `Train` with local steps (lines 4-9 of Algorithm 2), `Measure` with a gradient, and what else
    its method asks for."""

    def __init__(
        self,
        algorithm: Algorithm,
        steps: Sequence[int],
        trainer: Trainer,
        checkpoints: MachineCheckpoints,
        fetched: FeatureTraffic,
        meter: LocalGradient | None,
    ) -> None:
        """`steps`: local steps of rounds 1..R. `fetched` counts remote features, `meter` measures for diagnostics."""
        self.trainer, self._steps, self._checkpoints = trainer, steps, checkpoints
        self._fetched, self._meter = fetched, meter
        own: dict[type[Message], Callable[[Message], Message]] = {
            Train: self._train,
            Measure: self._measure,
            Restore: self._restore,
        }
        self._shared = list[Tensor]()
        self._handlers = own | dict(algorithm.handlers(self))
        self._busy = self._since = Elapsed()
        self._began = 0.0
        self._unsaved_round = 0

    def handle(self, request: Message) -> Message | None:
        """The reply; None to `Finish`, after which nothing more is asked."""
        if isinstance(request, Finish):
            self._checkpoints.finish(request.durable_round)
            return None
        if type(request) not in self._handlers:
            raise ProtocolError(f"a machine does not answer {type(request).__name__}")
        progress.begin(f"round {request.round}")
        if self._busy == Elapsed():
            self._began = time.time()
        self._since = now()
        if request.durable_round:
            self._checkpoints.writer.prune(request.durable_round)
        reply = self._handlers[type(request)](request)
        if not isinstance(request, Measure | Restore):
            self._busy += now() - self._since
        if reply.stats:
            self._busy, self._unsaved_round = Elapsed(), request.round
        return reply

    def after_reply(self) -> None:
        """Saves a round that has ended; the server does not wait for it."""
        if self._unsaved_round:
            self._checkpoints.save(self._unsaved_round)
            self._unsaved_round = 0

    def local_steps(self, round_: int) -> int:
        return self._steps[round_ - 1]

    def _train(self, request: Message) -> Message:
        """Lines 4-9 of Algorithm 2: steps(r) local steps from the model that the server sent."""
        log.info("round %d: %d local steps begin", request.round, self.local_steps(request.round))
        self.trainer.run_steps(request.vector, request.round, self.local_steps(request.round))
        theta, stats = self.trainer.theta(), self.stats(request.round)
        if not is_finite(theta):
            log.warning("round %d: parameters are not finite; the optimiser starts anew", request.round)
            self.trainer.reset_optimizer()  # its moments are poisoned too
        return Trained(request.round, theta, stats=stats)

    def _measure(self, request: Message) -> Message:
        assert self._meter is not None
        return Gradient(request.round, self._meter.at(request.vector))

    def _restore(self, request: Message) -> Message:
        if request.content is not None:
            self._shared.append(request.content.clone())
        else:
            self._checkpoints.restore(request.round, self._shared)
            self._shared.clear()
        return Restored(request.round)

    def stats(self, round_: int) -> TrainStats:
        """How the round went, taken once, at its end. What it says of a checkpoint is about the last one written."""
        writer, fetched = self._checkpoints.writer, self._fetched.take()
        busy, ended = self._busy + (now() - self._since), time.time()
        writer.finish()  # the round was longer than its write, so that nothing is waited for
        return TrainStats(
            train_loss=self.trainer.mean_loss() or 0.0,
            seconds_local=busy.seconds - fetched.seconds,
            steps=self.local_steps(round_),
            peak_rss_mb=peak_rss_mb(),
            checkpoint_round=writer.durable_round,
            checkpoint_failed=int(writer.problem is not None),
            seconds_checkpoint=writer.seconds,
            checkpoint_bytes=writer.bytes,
            feature_pairs=fetched.pairs,
            feature_id_bytes=fetched.id_bytes,
            feature_row_bytes=fetched.row_bytes,
            cpu_local=busy.cpu,
            began=self._began,
            ended=ended,
        )


def peak_rss_mb() -> float:
    """Of this process's own memory image; getrusage would count what the launcher held before it became this."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("/proc/self/status has no VmHWM")
