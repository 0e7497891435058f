"""One job as the server runs it, and what a rank does of it. The start is the same over processes and on loopback."""

import logging
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Protocol

from llcg_dist.algorithms.base import Algorithm
from llcg_dist.algorithms.registry import build_algorithm
from llcg_dist.comm.channel import ServerTransport
from llcg_dist.comm.codec import Codec
from llcg_dist.comm.ledger import Ledger
from llcg_dist.config.cluster import Backend
from llcg_dist.config.schema import Config, Resume
from llcg_dist.data.derived import shard_name
from llcg_dist.data.partition import ensure_store
from llcg_dist.data.store import read_shard
from llcg_dist.errors import UserError
from llcg_dist.job.agreement import (
    Identity,
    Offered,
    PartReport,
    assign_ranks,
    described_shards,
    require_parts,
    require_same,
    require_world,
)
from llcg_dist.job.checkpoint import CheckpointWriter
from llcg_dist.job.devices import threads_per_rank
from llcg_dist.job.evaluation_process import EvaluationProcess
from llcg_dist.job.handshake import (
    Begin,
    Hub,
    Identify,
    Leave,
    Offer,
    Ready,
    Reply,
    StepSeconds,
    TakePart,
    TrySteps,
    ask,
    ask_all,
    refusing_mistakes,
    tell_all,
)
from llcg_dist.job.loopback import LoopbackHub
from llcg_dist.job.open_run import OpenRun
from llcg_dist.job.process import Rank, log_to
from llcg_dist.job.processes import ProcessHub, join_cluster, work, work_again
from llcg_dist.job.resumption import choose_round, losses, refuse_to_start_over, starts_over
from llcg_dist.job.returning import Placed
from llcg_dist.job.run_dir import RunLock, RunState, choose_run_dir, claim_run_dir, finished_line, inspect_run_dir
from llcg_dist.job.server import Server
from llcg_dist.job.server_factory import build_server, start_after
from llcg_dist.job.start import Start
from llcg_dist.records.console import say, say_summary
from llcg_dist.records.mirror import restore_records
from llcg_dist.records.partition import PARTITION_FILE, record_partition
from llcg_dist.records.reading import readable_rows
from llcg_dist.records.rows import Row
from llcg_dist.records.starts import loss_line
from llcg_dist.training.threads import prepare_computing

log = logging.getLogger(__name__)


class ServerHub(Hub, Protocol):
    """The server's links to all machines, of either transport."""

    device: str
    evaluation_process: EvaluationProcess | None

    @property
    def ledger(self) -> Ledger: ...

    def refuse(self, reason: str) -> None:
        """Tells the launchers that no start of this job can work."""

    def placed(self, placed: Placed) -> None:
        """The server has decided how the job starts, and which rank trains which part."""

    def transport(self, rank_of_part: Sequence[int], codec: Codec) -> ServerTransport: ...

    def audit(self, start_round: int) -> Row | None:
        """After the last exchange: the verdict on what crossed, where one was asked for."""

    def finished_before(self, run_dir: Path) -> None:
        """There is nothing to do: the run in this folder is finished."""


def run(config: Config, me: Rank) -> None:
    """This rank's part of the job; returns when the job is done."""
    prepare_computing(threads_per_rank(config.cluster.threads, int(os.environ.get("LOCAL_WORLD_SIZE", 1))))
    CheckpointWriter.forget_all()
    algorithm = build_algorithm(config)
    if not algorithm.trains_on_parts or config.cluster.backend == Backend.loopback:
        require_world(int(os.environ.get("WORLD_SIZE", 1)), 1)
        serve(config, algorithm, LoopbackHub(config, algorithm))
        CheckpointWriter.prune_all(CheckpointWriter.saved_by_all())
        return
    if "WORLD_SIZE" not in os.environ:  # nobody has started the other ranks
        require_world(1, 1 + algorithm.num_machines)
    hub = join_cluster(config, algorithm, me)
    take_part(config, algorithm, hub, me)
    hub.close()


def take_part(config: Config, algorithm: Algorithm, hub: ProcessHub, me: Rank) -> None:
    """One job in a cluster that has been joined already: as its server, or as a machine."""
    if me.supervisor.situation.ticket:
        work_again(config, algorithm, hub, me)
    elif hub.rank == 0:
        me.supervisor.serves()
        serve(config, algorithm, hub)
    else:
        work(config, algorithm, hub, me)


def serve(config: Config, algorithm: Algorithm, hub: ServerHub) -> None:
    """The server's part of a job: agrees with the machines on how it starts, trains, and says how it went."""
    with refusing_mistakes(hub, hub.refuse):
        require_same([Identity.of(config), *ask_all(hub, Identify(), Identity)])
        require_world(1 + hub.num_machines, 1 + algorithm.num_machines)
        run_dir = claim_run_dir(config, choose_run_dir(config))
        lock = RunLock(run_dir)
    with lock:
        with refusing_mistakes(hub, hub.refuse):
            state = inspect_run_dir(config, run_dir)
            restored = _restore_records(config, run_dir)
            if state is RunState.FINISHED:
                tell_all(hub, Leave())
                say(finished_line(run_dir))
                hub.finished_before(run_dir)
                return
            server, start_round = _start(config, algorithm, hub, run_dir, state, restored)
        summary = server.train(lambda: hub.audit(start_round))
        say_summary(summary, run_dir)


def _restore_records(config: Config, run_dir: Path) -> list[str]:
    """Names of the records that the run directory has lost and checkpoint.mirror still had."""
    if not config.checkpoint.mirror or starts_over(config, run_dir):
        return []
    restored = restore_records(Path(config.checkpoint.mirror), run_dir)
    if restored:
        say(f"{run_dir}: {', '.join(restored)} restored from checkpoint.mirror={config.checkpoint.mirror}")
    return restored


def _start(
    config: Config, algorithm: Algorithm, hub: ServerHub, run_dir: Path, state: RunState, restored: list[str]
) -> tuple[Server, int]:
    """Opens the run, gives every machine its part, and finds the round to go on from."""
    store, manifest = ensure_store(config, access=algorithm.data_access)
    log_to(run_dir / "logs" / "server.log")
    rank_of_part = assign_ranks(ask_all(hub, Offer(str(run_dir)), Offered), algorithm.num_machines)
    full = read_shard(store / "global", config.verify)
    run = OpenRun(config, algorithm, run_dir, store, manifest, full, hub.device, restored, hub.evaluation_process)

    def by_part(replies: list[Reply]) -> list[Reply]:
        return [replies[rank - 1] for rank in rank_of_part]  # replies come by rank, the first from rank 1

    part_of_rank = sorted(range(len(rank_of_part)), key=rank_of_part.__getitem__)
    reports = by_part(ask(hub, [TakePart(part, rank_of_part) for part in part_of_rank], PartReport))
    names = [shard_name(algorithm.data_access, part) for part in range(len(rank_of_part))]
    require_parts(reports, rank_of_part, described_shards(manifest, names))
    start = _choose_start(run, [report.checkpoints for report in reports], state)
    step_seconds = list[float]()
    if start.measures_steps(config):
        step_seconds = [tried.seconds for tried in by_part(ask_all(hub, TrySteps(asdict(start)), StepSeconds))]
        start = start.with_speeds(config, step_seconds)
    ask_all(hub, Begin(asdict(start)), Ready)
    if not start.round:  # of another run, where this one starts over
        (run_dir / PARTITION_FILE).unlink(missing_ok=True)
    if algorithm.trains_on_parts:
        record_partition(run_dir, manifest, run.full)
    checksums = [report.checksum for report in reports]
    hub.placed(Placed(str(run_dir), rank_of_part, checksums, asdict(start), asdict(Identity.of(config))))
    log.info("store %s, rank of each part %s, going on after round %d", store, rank_of_part, start.round)
    server = build_server(run, start, lambda codec: hub.transport(rank_of_part, codec), hub.ledger, step_seconds)
    return server, start.round


def _choose_start(run: OpenRun, checkpoints: Sequence[Sequence[int]], state: RunState) -> Start:
    """The round to go on from, and what that costs; `checkpoints`: the rounds that each part has complete ones of."""
    if starts_over(run.config, run.run_dir):
        return start_after(run, 0)
    rows = readable_rows(run.run_dir)
    round_, lost = choose_round(run.checkpoints.rounds(), checkpoints, rows, run.absent_in)
    if not round_:
        refuse_to_start_over(run.config, run.run_dir, checkpoints, rows, state is RunState.NEW)
        if run.config.resume == Resume.must and state is RunState.UNFINISHED:
            raise UserError("resume=must: no round was saved by every rank; use resume=auto to start anew")
    for loss in losses(lost, round_, run.algorithm.machine_state()):
        say(f"warning: {loss_line(loss)}")
        log.warning(loss_line(loss))
    return start_after(run, round_, lost)
