"""Builds the server of a run: construction apart from behaviour."""

import logging
import os
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from llcg_dist import seeding
from llcg_dist.algorithms.base import Algorithm
from llcg_dist.comm.channel import ServerChannel, ServerTransport
from llcg_dist.comm.codec import Codec
from llcg_dist.comm.error_feedback import server_compressor
from llcg_dist.comm.ledger import Ledger
from llcg_dist.config.algorithm import AUTO
from llcg_dist.config.cluster import Backend
from llcg_dist.config.schema import Config
from llcg_dist.config.train import LocalLoss
from llcg_dist.data.cut import correction_nodes
from llcg_dist.data.derived import DataAccess, halo_bytes
from llcg_dist.data.graph import TRAIN, VAL
from llcg_dist.data.rows import Array
from llcg_dist.data.store import Shard
from llcg_dist.data.views import GraphView
from llcg_dist.errors import UserError
from llcg_dist.job.checkpoint import SERVER_OWNER, CheckpointFiles, CheckpointWriter, explain_misfit
from llcg_dist.job.devices import server_threads, threads_per_rank
from llcg_dist.job.initial_weights import InitialWeights, read_initial_weights
from llcg_dist.job.mirrored_files import open_files
from llcg_dist.job.observer import Observer
from llcg_dist.job.resumption import losses, starts_over
from llcg_dist.job.server import Server
from llcg_dist.job.server_checkpoints import ServerCheckpoints, ServerState, planned_rounds
from llcg_dist.job.start import Start, checkpoint_folder
from llcg_dist.models import build_model
from llcg_dist.models.base import Model
from llcg_dist.models.samplers import sampler_for
from llcg_dist.records.console import Progress
from llcg_dist.records.mirror import RecordsMirror
from llcg_dist.records.recorder import Recorder
from llcg_dist.records.rows import read_rows
from llcg_dist.training.auto_s import StepChooser
from llcg_dist.training.average import averaging_weights
from llcg_dist.training.correction import Corrector
from llcg_dist.training.diagnostics import Diagnostics
from llcg_dist.training.evaluation import EvaluationSettings, Evaluator
from llcg_dist.training.flat_vector import flatten, state_dict_bytes, statistics_mask
from llcg_dist.training.learning_rate import LearningRates
from llcg_dist.training.loss import class_shares
from llcg_dist.training.screening import Screener
from llcg_dist.training.trainer import StepSettings, Trainer

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class OpenRun:
    """A run as the server has opened it."""

    config: Config
    algorithm: Algorithm
    run_dir: Path
    store: Path
    manifest: dict[str, Any]
    full: Shard
    """The full graph."""
    device: str
    restored: list[str] = field(default_factory=list)
    """Records that were copied from checkpoint.mirror."""

    @cached_property
    def records_mirror(self) -> RecordsMirror | None:
        mirror = self.config.checkpoint.mirror
        return RecordsMirror(Path(mirror)) if mirror else None

    @cached_property
    def checkpoints(self) -> CheckpointFiles:
        folder = checkpoint_folder(self.config, self.run_dir)
        return open_files(folder, self.config.checkpoint.mirror, SERVER_OWNER, self.records_mirror)

    @property
    def train_nodes(self) -> list[int]:
        """Training nodes of every machine."""
        if self.algorithm.trains_on_parts:
            return [part["train_nodes"] for part in self.manifest["parts"]]
        return [len(self.full.graph.nodes_in(TRAIN))] * self.algorithm.num_machines

    @property
    def assignment(self) -> Array | None:
        """The part of every node, where there are parts."""
        return self.full.extra["assignment"] if self.algorithm.trains_on_parts else None

    @cached_property
    def initial_weights(self) -> InitialWeights | None:
        """Of a warm start; UserError where they do not fit."""
        place = self.config.init_from
        return read_initial_weights(place, self.new_model()) if place else None

    def new_model(self) -> Model:
        return build_model(self.config.model, self.full.graph.num_features, self.full.graph.num_classes)


def start_after(run: OpenRun, round_: int, lost: Sequence[int] = ()) -> Start:
    """What all ranks are told where the run goes on after the checkpoint of `round_` (0: starts anew); the parts `lost`
    have none of it."""
    config, graph = run.config, run.full.graph
    saved = run.checkpoints.load(round_) if round_ else {}
    if not round_:
        _require_what_it_begins_with(run)
    with explain_misfit(SERVER_OWNER, round_):
        planned = planned_rounds(saved, config.num_rounds)
    shares = None
    if config.train.local_loss == LocalLoss.calibrated:
        labels = torch.from_numpy(graph.labels[graph.nodes_in(TRAIN)])
        shares = class_shares(labels, graph.num_classes).tolist()
    return Start(round_, planned, saved.get("elapsed", 0.0), starts_over(config, run.run_dir), list(lost), shares)


def _require_what_it_begins_with(run: OpenRun) -> None:
    """Raises UserError, before any machine is built, for what only the data and the file of a warm start can tell."""
    weights = run.initial_weights
    if weights:
        log.info("begins with the weights in %s (sha256 %s)", weights.path, weights.sha256)
    patience = run.config.early_stop.patience
    if patience and not len(run.full.graph.nodes_in(VAL)):
        raise UserError(f"early_stop.patience={patience}: the graph has no validation nodes to judge by; leave it off")


def build_server(
    run: OpenRun, start: Start, make_transport: Callable[[Codec], ServerTransport], ledger: Ledger
) -> Server:
    """The server of a run whose machines are reached by the transport for messages of this codec."""
    config, algorithm = run.config, run.algorithm
    seeding.seed_torch(seeding.generator(config.seed, seeding.INITIAL_WEIGHTS_STREAM, 0))
    model = run.new_model()
    if start.round == 0 and run.initial_weights:
        model.load_state_dict(run.initial_weights.state)
    initial, statistics = flatten(model), statistics_mask(model)
    steps = algorithm.local_steps(start.planned_rounds)
    corrector = _corrector(run, start, model, steps)
    paper_bytes = state_dict_bytes(model) + model.unused_bytes
    recorder = _recorder(run, start, paper_bytes)
    compressor = server_compressor(config.algorithm.exchange_dtype, statistics)
    transport = make_transport(compressor.codec)
    channel = ServerChannel(transport, compressor, ledger, algorithm.messages, algorithm.trains_on_parts)
    screener = Screener(config, averaging_weights(config.algorithm.averaging, run.train_nodes), statistics)
    state = ServerState(algorithm, corrector, compressor, ledger, recorder, start.planned_rounds)
    files = run.checkpoints
    writer = CheckpointWriter(files, config.checkpoint.every, config.checkpoint.keep, config.num_rounds, start.round)
    checkpoints = ServerCheckpoints(files, writer, state, recorder, start, initial)
    evaluator = Evaluator(run.full.graph, run.new_model(), EvaluationSettings.of(config, _server_threads(run)))
    observer = Observer(config, evaluator, recorder, _diagnostics(run), steps)
    return Server(algorithm, channel, corrector, screener, checkpoints, observer)


def _server_threads(run: OpenRun) -> int:
    cluster, ranks_here = run.config.cluster, int(os.environ.get("LOCAL_WORLD_SIZE", 1))
    one_process = not run.algorithm.trains_on_parts or cluster.backend == Backend.loopback
    may_use_more = not one_process and run.config.model.target is None  # others' layers may sum in another order
    threads = threads_per_rank(cluster.threads, ranks_here)
    return server_threads(cluster.server_threads, threads, ranks_here - 1 if may_use_more else None)


def _corrector(run: OpenRun, start: Start, model: Model, steps: list[int]) -> Corrector:
    """Takes the server's own steps on the full graph, and chooses their number with S=auto."""
    config, graph = run.config, run.full.graph
    rates = LearningRates(config.train, steps, start.planned_rounds)
    lr, lr_factor = run.algorithm.server_learning_rate(rates)
    settings = StepSettings(seeding.SERVER_STREAM, config.seed, config.train.server_batch_size, lr, lr_factor)
    nodes = correction_nodes(config.sampling.server_minibatch, graph, run.full.extra["assignment"])
    view = GraphView(graph, nodes)
    sampler = sampler_for(model, view.topology, config.sampling.server_fanout)
    trainer = Trainer(view, model, sampler, settings, config.train, run.device)
    chooser, automatic = None, config.algorithm.S == AUTO
    if automatic and run.assignment is not None:
        mean_steps = statistics.mean(steps[: start.planned_rounds])
        chooser = StepChooser(config, graph, run.assignment, mean_steps, run.device)
    return Corrector(trainer, chooser, config.algorithm.fixed_correction_steps)


def _recorder(run: OpenRun, start: Start, paper_bytes: int) -> Recorder:
    algorithm, progress = run.algorithm, Progress(run.config, start.round, read_rows(run.run_dir, start.round))
    halo = algorithm.data_access is DataAccess.PART_AND_HALO
    constants = {
        "metric": run.full.graph.metric,
        "paper_mb_per_round": algorithm.num_machines * paper_bytes / 1e6 if algorithm.trains_on_parts else 0.0,
        "halo_bytes": sum(halo_bytes(run.config, run.store)) if halo else 0,
        "start": _what_happened(run, start),
    }
    recorder = Recorder(run.config, run.run_dir, start.round, start.elapsed, constants, progress.round)
    recorder.mirror = run.records_mirror
    return recorder


def _what_happened(run: OpenRun, start: Start) -> dict[str, Any]:
    """What starts.json says of a start besides its round: the weights it began with, and what was lost."""
    lost = losses(start.lost, start.round, run.algorithm.machine_state())
    init = run.initial_weights.as_json() if start.round == 0 and run.initial_weights else None
    happened = {"lost": lost, "restored": run.restored, "init_from": init}
    return {key: value for key, value in happened.items() if value}


def _diagnostics(run: OpenRun) -> Diagnostics | None:
    if not run.config.diagnostics.every or run.assignment is None:
        return None
    access, graph = run.algorithm.data_access, run.full.graph
    return Diagnostics(run.config, access, graph, run.assignment, run.device)
