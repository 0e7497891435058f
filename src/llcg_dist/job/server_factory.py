"""Builds the server of a run: construction apart from behaviour."""

import logging
import os
from collections.abc import Callable, Sequence
from typing import Any

import torch

from llcg_dist import seeding
from llcg_dist.comm.channel import ServerChannel, ServerTransport
from llcg_dist.comm.codec import Codec
from llcg_dist.comm.deadline import Deadline
from llcg_dist.comm.error_feedback import server_compressor
from llcg_dist.comm.ledger import Ledger
from llcg_dist.comm.members import Members
from llcg_dist.config.cluster import Backend, OnLoss
from llcg_dist.config.train import LocalLoss
from llcg_dist.data.derived import DataAccess, halo_bytes
from llcg_dist.data.graph import TRAIN, VAL
from llcg_dist.errors import UserError
from llcg_dist.job.checkpoint import SERVER_OWNER, CheckpointWriter, explain_misfit
from llcg_dist.job.corrector_factory import build_corrector, build_mixer, fill_record
from llcg_dist.job.devices import evaluation_device, free_memory, server_threads, threads_per_rank
from llcg_dist.job.evaluation_process import QUEUE, EvaluationsBeside, Task
from llcg_dist.job.evaluations import Evaluations, EvaluationsHere
from llcg_dist.job.observer import Observer
from llcg_dist.job.open_run import OpenRun
from llcg_dist.job.resumption import losses, starts_over
from llcg_dist.job.server import Server
from llcg_dist.job.server_checkpoints import ServerCheckpoints, ServerState, planned_rounds, recorded_rounds
from llcg_dist.job.stand_in import StandIn
from llcg_dist.job.start import Start
from llcg_dist.records.cluster_time import EvaluatorQueue
from llcg_dist.records.console import Progress
from llcg_dist.records.recorder import Recorder
from llcg_dist.records.rows import read_rows
from llcg_dist.training.average import averaging_weights
from llcg_dist.training.diagnostics import Diagnostics
from llcg_dist.training.flat_vector import flatten, state_dict_bytes, statistics_mask
from llcg_dist.training.loss import class_shares
from llcg_dist.training.screening import Screener

log = logging.getLogger(__name__)


def start_after(run: OpenRun, round_: int, lost: Sequence[int] = ()) -> Start:
    """What all ranks are told where the run goes on after the checkpoint of `round_` (0: starts anew); the parts `lost`
    have none of it."""
    config, graph = run.config, run.full.graph
    saved = run.checkpoints.load(round_) if round_ else {}
    if not round_:
        _require_what_it_begins_with(run)
    with explain_misfit(SERVER_OWNER, round_):
        planned, recorded = planned_rounds(saved, config.num_rounds), recorded_rounds(saved, round_)
    shares = None
    if config.train.local_loss == LocalLoss.calibrated:
        labels = torch.from_numpy(graph.labels[graph.nodes_in(TRAIN)])
        shares = class_shares(labels, graph.num_classes).tolist()
    elapsed, over = saved.get("elapsed", 0.0), starts_over(config, run.run_dir)
    settings = config.algorithm
    fill_ratio, speeds = settings.fill_ratio or saved.get("fill_ratio"), settings.speeds or saved.get("speeds")
    return Start(
        round=round_,
        planned_rounds=planned,
        recorded=recorded,
        elapsed=elapsed,
        over=over,
        lost=list(lost),
        class_shares=shares,
        fill_ratio=fill_ratio,
        speeds=list(speeds) if speeds else None,
    )


def _require_what_it_begins_with(run: OpenRun) -> None:
    """Raises UserError, before any machine is built, for what only the data and the file of a warm start can tell."""
    weights = run.initial_weights
    if weights:
        log.info("begins with the weights in %s (sha256 %s)", weights.path, weights.sha256)
    patience = run.config.early_stop.patience
    if patience and not len(run.full.graph.nodes_in(VAL)):
        raise UserError(f"early_stop.patience={patience}: the graph has no validation nodes to judge by; leave it off")


def build_server(
    run: OpenRun,
    start: Start,
    make_transport: Callable[[Codec], ServerTransport],
    ledger: Ledger,
    step_seconds: Sequence[float] = (),
) -> Server:
    """The server of a run whose machines are reached by the transport for messages of this codec. `step_seconds`: what
    a local step takes at every part's machine, where the start asks for it."""
    config, algorithm = run.config, run.algorithm
    seeding.seed_torch(seeding.generator(config.seed, seeding.INITIAL_WEIGHTS_STREAM, 0))
    model = run.new_model()
    if start.round == 0 and run.initial_weights:
        model.load_state_dict(run.initial_weights.state)
    initial, statistics = flatten(model), statistics_mask(model)
    steps = algorithm.local_steps(start.planned_rounds)
    fill = fill_record(run, start, steps, step_seconds)
    corrector = build_corrector(run, start, model, steps, fill.get("ratio"))
    algorithm.mixer = build_mixer(run, start, steps)
    paper_bytes = state_dict_bytes(model) + model.unused_bytes
    plans = {name: plan for name, plan in (("fill", fill), ("speeds", _speeds(start, step_seconds))) if plan}
    recorder = _recorder(run, start, paper_bytes, plans)
    compressor = server_compressor(config.algorithm.exchange_dtype, statistics)
    transport = make_transport(compressor.codec)
    members = Members(transport.num_machines, config.cluster.min_machines if algorithm.trains_on_parts else 1)
    channel = ServerChannel(transport, compressor, ledger, algorithm.messages, members, algorithm.trains_on_parts)
    transport.deadline = Deadline(config.cluster.deadline, steps) if config.cluster.deadline else None
    if config.cluster.on_loss == OnLoss.go_on and config.cluster.stand_in:
        channel.substitute = StandIn(run, start)
    weights = averaging_weights(config.algorithm.averaging, run.train_nodes)
    screener = Screener(config, weights, statistics, channel.names, algorithm.judges_updates)
    state = ServerState(algorithm, corrector, compressor, ledger, recorder, start)
    files = run.checkpoints
    writer = CheckpointWriter(files, config.checkpoint.every, config.checkpoint.keep, config.num_rounds, start.round)
    checkpoints = ServerCheckpoints(files, writer, state, recorder, start, initial)
    evaluations = _evaluations(run, initial.numel(), recorder.best_score)
    steps_of_part = [start.local_steps(algorithm, part) for part in range(transport.num_machines)]
    observer = Observer(config, evaluations, recorder, _diagnostics(run), steps_of_part or [steps])
    return Server(algorithm, channel, corrector, screener, checkpoints, observer)


def _evaluations(run: OpenRun, size: int, best: float | None) -> Evaluations:
    """Of models with `size` parameters, where `best` is the best score so far."""
    task = Task(run.config, run.store / "global", _server_threads(run), best, size, _evaluation_device(run))
    if run.evaluation_process:
        return EvaluationsBeside(run.evaluation_process, task)
    if run.algorithm.trains_on_parts and run.config.cluster.backend != Backend.loopback:
        log.info("evaluation runs in the server's process (evaluate.process=%s)", run.config.evaluate.process)
    return EvaluationsHere(task.scorer(run.full.graph))


def _evaluation_device(run: OpenRun) -> str:
    graph, config = run.full.graph, run.config
    state_bytes = 4 * graph.num_nodes * max(config.model.hidden, graph.num_classes)
    return evaluation_device(run.device, config.evaluate.scratch, state_bytes, free_memory(run.device))


def _server_threads(run: OpenRun) -> int:
    cluster, ranks_here = run.config.cluster, int(os.environ.get("LOCAL_WORLD_SIZE", 1))
    one_process = not run.algorithm.trains_on_parts or cluster.backend == Backend.loopback
    may_use_more = not one_process and run.config.model.target is None  # others' layers may sum in another order
    threads = threads_per_rank(cluster.threads, ranks_here)
    return server_threads(cluster.server_threads, threads, ranks_here - 1 if may_use_more else None)


def _speeds(start: Start, step_seconds: Sequence[float]) -> dict[str, Any]:
    """What balance_speed plans with, for starts.json, and what it follows from where that was measured now."""
    if not start.speeds:
        return {}
    return {"speeds": start.speeds} | ({"cpu_local_step_by_part": list(step_seconds)} if step_seconds else {})


def _recorder(run: OpenRun, start: Start, paper_bytes: int, plans: dict[str, dict[str, Any]]) -> Recorder:
    algorithm, rows = run.algorithm, read_rows(run.run_dir, start.recorded)
    halo = algorithm.data_access is DataAccess.PART_AND_HALO
    constants = {
        "metric": run.full.graph.metric,
        "paper_mb_per_round": algorithm.num_machines * paper_bytes / 1e6 if algorithm.trains_on_parts else 0.0,
        "halo_bytes": sum(halo_bytes(run.config, run.store)) if halo else 0,
        "fill_ratio": plans.get("fill", {}).get("ratio"),
        "speeds": start.speeds,
        "start": _what_happened(run, start) | plans,
    }
    recorder = Recorder(run.config, run.run_dir, start.round, start.elapsed, constants, rows)
    recorder.on_round, recorder.mirror = Progress(run.config, start.round, rows).round, run.records_mirror
    if run.evaluation_process:
        recorder.evaluator_queue = EvaluatorQueue(QUEUE, recorder.rows)
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
