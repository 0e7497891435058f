"""A local machine: one part of the graph, and the local steps of each round."""

import logging
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from llcg_dist import seeding
from llcg_dist.algorithms import Algorithm
from llcg_dist.comm.codec import Codec
from llcg_dist.comm.error_feedback import machine_compressor
from llcg_dist.comm.messages import MachineRound, MessageSizes, TrainRequest, TrainStats, Update
from llcg_dist.comm.remote_rows import FeatureTraffic
from llcg_dist.config.schema import Config
from llcg_dist.data.views import View
from llcg_dist.job.checkpoint import CheckpointFiles, CheckpointWriter, explain_misfit, part_owner
from llcg_dist.models import build_model
from llcg_dist.sampling.minibatch import fanouts_per_layer
from llcg_dist.sampling.neighbor import NeighborSampler
from llcg_dist.training.diagnostics import LocalGradient, due
from llcg_dist.training.flat_vector import statistics_mask
from llcg_dist.training.learning_rate import LearningRates
from llcg_dist.training.loss import calibration, class_shares
from llcg_dist.training.screening import is_finite
from llcg_dist.training.trainer import StepSettings, Trainer

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Assignment:
    """What the server tells every machine at the start."""

    start_round: int = 0
    """The round whose checkpoints the run goes on from; 0: none."""
    planned_rounds: int = 0
    """The rounds that the run had when it was first started."""
    class_shares: list[float] | None = None
    """Of all training nodes, for the calibrated loss: all that a machine is told about the labels of other parts."""


class Machine:
    """Trains on `view`: a part, perhaps with more than its own nodes to read, or (for `single`) the whole graph."""

    def __init__(
        self,
        config: Config,
        algorithm: Algorithm,
        view: View,
        part: int,
        assignment: Assignment,
        checkpoints: Path,
        device: str = "cpu",
        fetched: FeatureTraffic | None = None,
    ) -> None:
        self._steps = algorithm.local_steps(assignment.planned_rounds)
        self._shares_gradients, self._fetched = algorithm.shares_gradients, fetched or FeatureTraffic()
        start_round = assignment.start_round
        model = build_model(config.model, view.num_features, view.num_classes)
        self._statistics = statistics_mask(model)
        self._exchange = machine_compressor(config.algorithm.exchange_dtype, self._statistics)
        self.sizes = message_sizes(self._exchange.codec, self._shares_gradients)
        machines_in_one = config.cluster.num_machines if config.algorithm.name == "single" else 1
        batch_size = config.train.local_batch_size * machines_in_one
        rates = LearningRates(config.train, self._steps, assignment.planned_rounds)
        shift = _logit_shift(view, assignment.class_shares)
        step_settings = StepSettings(
            seeding.part_stream(part), config.seed, batch_size, config.train.local_lr, rates.machine, shift
        )
        fanouts = fanouts_per_layer(config.sampling.fanout, model.depth)
        sampler = NeighborSampler(view.topology, fanouts, config.sampling.method)
        self._trainer = Trainer(view, model, sampler, step_settings, config.train, device)
        self._config = config
        self._meter = LocalGradient(config, view, NeighborSampler, device) if config.diagnostics.every else None
        files = CheckpointFiles(checkpoints, part_owner(part))
        if start_round:
            saved = files.load(start_round)
            with explain_misfit(part_owner(part), start_round):
                self._trainer.load_optimizer_state(saved["optimizer"])
                self._exchange.load_state(saved["exchange"])
        files.drop_after(start_round)
        self.saver = CheckpointWriter(
            files, config.checkpoint.every, config.checkpoint.keep, config.num_rounds, start_round
        )

    def receive(self, request: TrainRequest) -> TrainRequest:
        return request if request.theta is None else replace(request, theta=self._exchange.received(request.theta))

    def measures(self, round_: int) -> bool:
        return due(self._config, round_)

    def measure(self, theta: Tensor) -> Tensor:
        assert self._meter is not None
        return self._meter.at(theta)

    def learn(self, request: TrainRequest, round_: int) -> MachineRound:
        """Lines 4-9 of Algorithm 2: steps(r) local steps from the model that the server sent."""
        started, waited = time.perf_counter(), 0.0
        log.info("round %d: %d local steps begin", round_, self._steps[round_ - 1])
        self.saver.prune(request.durable_round)
        self._trainer.begin_round(request.theta, round_)
        for _ in range(self._steps[round_ - 1]):
            self._trainer.backward()
            if self._shares_gradients:
                sent = time.perf_counter()
                self._trainer.set_gradient((yield self._trainer.flat_gradient()))
                waited += time.perf_counter() - sent
            self._trainer.optimizer_step()
        theta, fetched = self._trainer.theta(), self._fetched.take()
        seconds = time.perf_counter() - started - waited - fetched.seconds
        if not is_finite(theta):
            log.warning("round %d: parameters are not finite; the optimiser starts anew", round_)
            self._trainer.reset_optimizer()  # its moments are poisoned too
        message = theta[self._statistics] if self._shares_gradients else self._exchange.send(theta)
        self.saver.save(round_, self._state)
        return Update(message, self._stats(seconds, self._steps[round_ - 1], fetched))

    def _state(self) -> dict[str, Any]:
        return {"optimizer": self._trainer.optimizer_state(), "exchange": self._exchange.state()}

    def _stats(self, seconds: float, steps: int, fetched: FeatureTraffic) -> TrainStats:
        saver = self.saver
        return TrainStats(
            train_loss=self._trainer.mean_loss() or 0.0,
            seconds_local=seconds,
            steps=steps,
            peak_rss_mb=peak_rss_mb(),
            checkpoint_round=saver.durable_round,
            checkpoint_failed=int(saver.problem is not None),
            seconds_checkpoint=saver.seconds,
            checkpoint_bytes=saver.bytes,
            feature_pairs=fetched.pairs,
            feature_id_bytes=fetched.id_bytes,
            feature_row_bytes=fetched.row_bytes,
        )


def _logit_shift(view: View, everywhere: list[float] | None) -> Tensor | None:
    if everywhere is None:
        return None
    labels = view.labels(torch.from_numpy(view.train_nodes))
    shares = class_shares(labels, view.num_classes)
    return calibration(shares, torch.tensor(everywhere, dtype=torch.float64), len(labels), view.task)


def message_sizes(codec: Codec, shares_gradients: bool) -> MessageSizes:
    """What crosses between server and machine: see Update and TrainRequest."""
    statistics = len(codec.statistics)
    update = statistics if shares_gradients else codec.elements
    return MessageSizes(codec.elements, update, codec.size - statistics, not shares_gradients, codec.dtype)


def peak_rss_mb() -> float:
    """Of this process's own memory image; getrusage would count what the launcher held before it became this."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("/proc/self/status has no VmHWM")
