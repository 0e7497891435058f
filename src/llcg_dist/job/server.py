"""The server: the whole graph, the correction steps, the evaluate of every round, the records."""

import dataclasses
import logging
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from llcg_dist import seeding
from llcg_dist.algorithms import Algorithm, build_algorithm
from llcg_dist.comm.channel import ServerChannel
from llcg_dist.comm.error_feedback import server_compressor
from llcg_dist.comm.ledger import Traffic
from llcg_dist.comm.messages import TrainStats, Update
from llcg_dist.config.facts import scored_statistics
from llcg_dist.config.schema import AUTO, Config
from llcg_dist.data.graph import TRAIN, Graph
from llcg_dist.data.rows import Array
from llcg_dist.data.views import GraphView
from llcg_dist.errors import TrainingError
from llcg_dist.job.checkpoint import SERVER, CheckpointFiles, CheckpointWriter, explain_misfit
from llcg_dist.job.machine import Assignment, message_sizes, peak_rss_mb
from llcg_dist.job.round_loop import run_server
from llcg_dist.models import build_model
from llcg_dist.records.recorder import Recorder
from llcg_dist.records.rows import RoundResult, Row
from llcg_dist.sampling.minibatch import fanouts_per_layer
from llcg_dist.sampling.neighbor import NeighborSampler
from llcg_dist.training.auto_s import StepChooser
from llcg_dist.training.average import averaging_weights, weighted_average
from llcg_dist.training.diagnostics import Diagnostics, due
from llcg_dist.training.evaluation import Evaluator, affordable_every
from llcg_dist.training.flat_vector import flatten, state_dict_bytes, statistics_mask
from llcg_dist.training.learning_rate import LearningRates
from llcg_dist.training.loss import class_shares
from llcg_dist.training.outer_optimizer import outer_optimizer
from llcg_dist.training.screening import Screened, is_finite, screen
from llcg_dist.training.trainer import StepSettings, Trainer

log = logging.getLogger(__name__)


class Server:
    """Rank 0, the trusted party: it alone holds the whole graph."""

    def __init__(
        self,
        config: Config,
        graph: Graph,
        train_nodes: list[int],
        run_dir: Path,
        checkpoints: Path,
        start_round: int = 0,
        device: str = "cpu",
        correction_nodes: Array | None = None,
        assignment: Array | None = None,
    ) -> None:
        """Goes on from the checkpoint of `start_round`; 0 starts anew. `correction_nodes`: see
        data/cut.py. `assignment`: the part of every node, for what is measured about the cut."""
        self._config, self._graph = config, graph
        files = CheckpointFiles(checkpoints, SERVER)
        saved = files.load(start_round) if start_round else {}
        files.drop_after(start_round)
        with explain_misfit(SERVER, start_round):
            self.planned_rounds = _planned_rounds(saved, config.num_rounds)
        self._weights = averaging_weights(config.algorithm.averaging, train_nodes)
        seeding.seed_torch(seeding.generator(config.seed, seeding.INITIAL_WEIGHTS_STREAM, 0))
        model = build_model(config.model, graph.num_features, graph.num_classes)
        self._theta = flatten(model)
        self._paper_bytes = state_dict_bytes(model) + model.unused_bytes
        algorithm = build_algorithm(config)
        self._shares_gradients = algorithm.shares_gradients
        self._statistics = statistics_mask(model)
        self._exchange = server_compressor(config.algorithm.exchange_dtype, self._statistics)
        self.sizes = message_sizes(self._exchange.codec, self._shares_gradients)
        # Where steps are shared the server takes the machines' own steps, so that it holds their model.
        lr = config.train.local_lr if self._shares_gradients else config.train.server_lr
        self._steps = algorithm.local_steps(self.planned_rounds)
        rates = LearningRates(config.train, self._steps, self.planned_rounds)
        factor = rates.machine if self._shares_gradients else rates.server
        step_settings = StepSettings(seeding.SERVER_STREAM, config.seed, config.train.server_batch_size, lr, factor)
        view = GraphView(graph, correction_nodes)
        sampler = NeighborSampler(view.topology, fanouts_per_layer(config.sampling.server_fanout, model.depth))
        self._corrector = Trainer(view, model, sampler, step_settings, config.train, device)
        self._expected_steps = 0 if config.algorithm.S == AUTO else config.algorithm.S  # auto: as in the last round
        self._outer = outer_optimizer(config.algorithm, self._statistics)
        evaluated_model = build_model(config.model, graph.num_features, graph.num_classes)
        kind, evaluate = config.algorithm.batchnorm_stats, config.evaluate
        kinds = scored_statistics(config)
        self._evaluator = Evaluator(graph, evaluated_model, kind, evaluate.chunk, evaluate.scratch, kinds)

        self._explained_waiting = False
        self._notes: Row = {}
        self._diagnostics: Diagnostics | None = None
        if config.diagnostics.every and assignment is not None:
            self._diagnostics = Diagnostics(
                config, algorithm.data_access, graph, assignment, correction_nodes, NeighborSampler, device
            )
        self._chooser: StepChooser | None = None
        if config.algorithm.S == AUTO and assignment is not None:
            mean_steps = statistics.mean(self._steps[: self.planned_rounds])
            self._chooser = StepChooser(config, graph, assignment, mean_steps, NeighborSampler, device)

        self._saver = CheckpointWriter(
            files, config.checkpoint.every, config.checkpoint.keep, config.num_rounds, start_round
        )
        self._durable_round = self.start_round = start_round
        self._recorder = Recorder(config, run_dir, start_round, saved.get("elapsed", 0.0))
        self._unrecorded: RoundResult | None = None
        self._earlier_messages: list[Row] = saved.get("messages", [])
        self.halo_bytes = 0
        """Of the remote nodes stored with the parts, over all of them (subgraph_approx)."""
        self.audit: Callable[[], Row | None] = lambda: None
        """Asked after the last exchange: the verdict on what crossed."""
        if saved:
            with explain_misfit(SERVER, start_round):
                self._take_over(saved)

    def _take_over(self, saved: dict[str, Any]) -> None:
        size = self._theta.numel()
        self._theta = saved["theta"]
        if self._theta.shape != (size,):
            raise ValueError(f"{tuple(self._theta.shape)} parameters for a model of {size}")
        self._corrector.load_optimizer_state(saved["optimizer"])
        self._outer.load_state(saved["outer"])
        self._exchange.load_state(saved["exchange"])
        if self._chooser:
            self._chooser.load_state(saved["auto_s"])
        if len(self._recorder.rows) < self.start_round:
            self._unrecorded = _unpack(saved["result"], self._theta)

    def assignment(self) -> Assignment:
        """What every machine is told at the start."""
        shares = None
        if self._config.train.local_loss == "calibrated":
            labels = torch.from_numpy(self._graph.labels[self._graph.nodes_in(TRAIN)])
            shares = class_shares(labels, self._graph.num_classes).tolist()
        return Assignment(self.start_round, self.planned_rounds, shares)

    def train(self, algorithm: Algorithm, channel: ServerChannel, on_round: Callable[[Row], None]) -> Row:
        """All rounds that are left; returns the summary that it also writes."""
        self._recorder.on_round = on_round
        self._ledger = channel.ledger
        self._ledger.restore(self._earlier_messages)
        theta = run_server(
            algorithm,
            self._theta,
            self.start_round + 1,
            self._unrecorded,
            channel,
            self._correction_steps,
            steward=self,
        )
        self._recorder.save_model("model.pt", self._evaluator.finished_model(theta))
        self._saver.finish()
        paper_mb = len(self._weights) * self._paper_bytes / 1e6 if algorithm.trains_on_parts else 0.0
        audit = self.audit()
        if audit:  # of this start; the ledger also has what earlier ones counted
            audit["after_round"] = self.start_round
        return self._recorder.finish(
            self._graph.metric, paper_mb, peak_rss_mb(), self.halo_bytes, channel.ledger, audit
        )

    def _correction_steps(self, theta: Tensor, round_: int, steps: int | str) -> Tensor:
        if isinstance(steps, str):
            assert self._chooser is not None
            started = time.perf_counter()
            steps, why = self._chooser.choose(theta, round_)
            self._notes |= why | {"seconds_auto_s": time.perf_counter() - started}
        self._notes["S"] = self._expected_steps = steps
        return self._corrector.run_steps(theta, round_, steps)[0] if steps else theta  # S=0: to the last bit

    # What the round loop asks for: see engine.Steward.

    def measures(self, round_: int) -> bool:
        return due(self._config, round_)

    def measure(self, theta: Tensor, gradients: Sequence[Tensor], round_: int) -> None:
        assert self._diagnostics is not None
        self._notes |= self._diagnostics.measure(self._exchange.held, round_, gradients, self._steps)

    def prepare(self, round_: int) -> None:
        if self._expected_steps:
            started = time.perf_counter()
            self._corrector.prefetch(round_, self._expected_steps)
            self._notes["seconds_prepare"] = time.perf_counter() - started

    def notes(self) -> Row:
        notes, self._notes = self._notes, {}
        return notes

    def message(self, theta: Tensor) -> Tensor:
        return self._exchange.send(theta)

    def share_steps(self, theta: Tensor, round_: int, channel: ServerChannel) -> Tensor:
        self._corrector.begin_round(theta, round_)
        for _ in range(self._steps[round_ - 1]):
            screened = screen(channel.gather_gradients(round_), self._weights, self.sizes.gradient)
            for part in screened.skipped:
                self._refuse(f"part {part} sent a gradient that is not finite in round {round_}", screened)
            mean = weighted_average(screened.vectors, screened.weights)
            channel.broadcast_gradient(mean)
            self._corrector.set_gradient(mean)
            self._corrector.optimizer_step()
        return self._corrector.theta().clone()

    def screen_updates(
        self, theta: Tensor, updates: list[Update], round_: int
    ) -> tuple[list[Tensor], list[float], list[int]]:
        models = self._exchange.received(theta, [update.theta for update in updates])
        size = self.sizes.update if self._shares_gradients else self._theta.numel()
        screened = screen(models, self._weights, size)
        for part in screened.skipped:
            loss = updates[part].stats.train_loss
            happened = f"part {part} sent parameters that are not finite in round {round_} (its loss {loss:.4g})"
            self._refuse(happened, screened)
        thetas = [self._completed(theta, vector) for vector in screened.vectors]
        if self._chooser:
            self._chooser.note_updates(theta, thetas, screened.weights)
        return thetas, screened.weights, screened.skipped

    def _refuse(self, happened: str, screened: Screened) -> None:
        """Ends the run, unless the others' values can stand for the bad one."""
        if self._config.on_nonfinite == "fail" or not screened.vectors:
            lr = self._config.train.local_lr
            advice = f"lower train.local_lr (now {lr:g}), or average the others with on_nonfinite=skip"
            raise TrainingError(f"{happened}; {advice}")

    def _completed(self, theta: Tensor, update: Tensor) -> Tensor:
        """A machine's whole model: where steps are shared it sends only what is not in `theta` already."""
        if not self._shares_gradients:
            return update
        return theta.masked_scatter(self._statistics, update)

    def outer_step(self, theta: Tensor, average: Tensor) -> Tensor:
        return self._outer.step(theta, average)

    def checkpoint(self, result: RoundResult) -> None:
        if not is_finite(result.theta):
            lr = self._config.train.server_lr
            raise TrainingError(f"round {result.round}: the correction diverged; lower train.server_lr (now {lr:g})")
        self._saver.save(result.round, lambda: self._state(result), before=self._recorder.sync)
        on_disk = [self._saver.durable_round, *(report.checkpoint_round for report in result.stats)]
        self._durable_round = max(self._durable_round, min(on_disk))
        self._saver.prune(self._durable_round)

    def evaluate_and_record(self, result: RoundResult) -> None:
        started = time.perf_counter()
        every = self._config.evaluate.every
        due = every > 0 and (result.round % every == 0 or result.round == self._config.num_rounds)
        scores = self._evaluator.evaluate(result.theta) if due else None
        best = self._recorder.best_score
        if scores and scores.val is not None and (best is None or scores.val > best):
            self._recorder.save_model("best.pt", self._evaluator.state_dict())
        seconds = time.perf_counter() - started
        self._recorder.round(result, scores, seconds, self._checkpoint_row(result))
        if due and result.round < self._config.num_rounds:
            self._explain_waiting(seconds, result.stats)

    def _explain_waiting(self, seconds: float, reports: Sequence[TrainStats]) -> None:
        """Once: an evaluation that takes longer than the local steps cannot hide behind them."""
        local = max((report.seconds_local for report in reports), default=seconds)
        every = affordable_every(seconds, local, self._config.evaluate.every)
        if every and not self._explained_waiting:
            self._explained_waiting = True
            log.warning(
                "evaluation takes longer (%.2g s) than the machines' local steps (%.2g s), and they wait for it: "
                "evaluate.every=%d would cost a tenth of the time at most",
                *(seconds, local, every),
            )

    def durable_round(self) -> int:
        return self._durable_round

    def _state(self, result: RoundResult) -> dict[str, Any]:
        return {
            "theta": result.theta,
            "optimizer": self._corrector.optimizer_state(),
            "outer": self._outer.state(),
            "exchange": self._exchange.state(),
            "auto_s": self._chooser.state() if self._chooser else None,
            "messages": self._ledger.as_json()["messages"],
            "result": _pack(result),
            "planned_rounds": self.planned_rounds,
            "elapsed": self._recorder.elapsed,
        }

    def _checkpoint_row(self, result: RoundResult) -> Row:
        reports, saver = result.stats, self._saver
        warnings = [f"part {part}: parameters not finite, update skipped" for part in result.skipped_parts]
        warnings += [
            f"part {p}: checkpoint not written" for p, report in enumerate(reports) if report.checkpoint_failed
        ]
        warnings += [f"server: {saver.problem}"] if saver.problem else []
        return {
            "checkpoint_round": self._durable_round,
            "checkpoint_bytes": saver.bytes + sum(report.checkpoint_bytes for report in reports),
            "seconds_checkpoint": max([saver.seconds, *(report.seconds_checkpoint for report in reports)]),
            "warnings": warnings,
        }


def _planned_rounds(saved: dict[str, Any], num_rounds: int) -> int:
    """The rounds of the first start, which schedules follow: a run may be continued with more, never with fewer."""
    planned = saved.get("planned_rounds", num_rounds)
    if not isinstance(planned, int) or not 1 <= planned <= num_rounds:
        raise ValueError(f"planned for {planned} rounds")
    return planned


def _pack(result: RoundResult) -> dict[str, Any]:
    """Plain numbers and lists; theta is stored beside it."""
    values = {f.name: getattr(result, f.name) for f in dataclasses.fields(result) if f.name != "theta"}
    return values | {
        "stats": [dataclasses.asdict(stats) for stats in result.stats],
        "traffic": dataclasses.asdict(result.traffic),
    }


def _unpack(values: dict[str, Any], theta: Tensor) -> RoundResult:
    stats = [TrainStats(**of_machine) for of_machine in values["stats"]]
    return RoundResult(**values | {"theta": theta, "stats": stats, "traffic": Traffic(**values["traffic"])})
