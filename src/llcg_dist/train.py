"""What a rank runs: `torchrun … -m llcg_dist.train [overrides]`. Rank 0 is the server, ranks 1..P are the machines."""

import logging
import os
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from llcg_dist.algorithms import Algorithm, build_algorithm
from llcg_dist.checkpoint import SERVER, CheckpointFiles, Saver, part_owner
from llcg_dist.cli.console import Progress, say
from llcg_dist.comm.channel import ServerChannel
from llcg_dist.comm.features import FeatureTraffic
from llcg_dist.comm.handshake import agree, newest_common_round, offer
from llcg_dist.comm.ledger import Ledger
from llcg_dist.comm.loopback import LoopbackChannel, LoopbackRows
from llcg_dist.comm.torch_dist import Cluster, DistMachineChannel, DistServerChannel, PeerRows, choose_backend
from llcg_dist.config import load_config
from llcg_dist.data.correction import correction_nodes
from llcg_dist.data.extras import Reads, halo_bytes
from llcg_dist.data.part_view import part_view
from llcg_dist.data.partition import ensure_store, store_path
from llcg_dist.data.store import Shard, held_parts, read_shard, write_json
from llcg_dist.data.views import GraphView, View
from llcg_dist.engine import run_machine
from llcg_dist.errors import PeerLostError, SilenceError, TrainingError, UserError
from llcg_dist.process import (
    Rank,
    Stopped,
    answer_signals,
    end_with_launcher,
    fail,
    ignore_signals,
    interrupt,
    log_to,
    name_of,
)
from llcg_dist.run_dir import RunLock, RunState, choose_run_dir, examine
from llcg_dist.schema import Config
from llcg_dist.server import Server
from llcg_dist.worker import Machine

log = logging.getLogger("llcg_dist.train")  # __name__ is __main__ in a rank

_WAIT_FOR_CULPRIT = 5.0
"""Seconds a rank that lost its peer stays, so that the launcher sees the dead rank first and names it."""


def main(overrides: Sequence[str]) -> int:
    """Exit code 0; 2 for a user's mistake; 143 or 130 after SIGTERM or SIGINT; 1 for anything else."""
    end_with_launcher()
    answer_signals()
    try:
        return _run_and_explain(overrides)
    except Stopped as stopped:  # the round in flight is dropped
        return 128 + stopped.signal
    finally:
        ignore_signals()
        Saver.finish_all()  # what is being saved becomes whole


def _run_and_explain(overrides: Sequence[str]) -> int:
    """The reason of a failure goes to stderr and to the launcher."""
    me = Rank()
    try:
        run(load_config(overrides), me)
    except UserError as error:
        return fail(str(error), exit_code=2)
    except (TrainingError, SilenceError) as error:
        return fail(f"{me}: {error}", exit_code=1)
    except PeerLostError as error:
        time.sleep(_WAIT_FOR_CULPRIT)
        return fail(f"{me}: {error}", exit_code=1)
    except Exception as error:
        log.exception("%s failed", me)
        traceback.print_exc()
        return fail(f"{me}: {type(error).__name__}: {error}", exit_code=1)
    return 0


def run(config: Config, me: Rank) -> None:
    torch.set_num_threads(config.cluster.threads)
    torch.set_flush_denormal(True)  # denormals slow a step down many times and mean nothing to the result
    algorithm = build_algorithm(config)
    if algorithm.trains_on_parts and config.cluster.backend != "loopback":
        _run_distributed(config, algorithm, me)
    else:
        _require_world(1)
        run_dir = choose_run_dir(config)
        with RunLock(run_dir):
            _run_alone(config, algorithm, run_dir)


def _run_distributed(config: Config, algorithm: Algorithm, me: Rank) -> None:
    _require_world(1 + config.cluster.num_machines)
    backend = choose_backend(config.cluster.backend, _device(config.cluster.device))
    cluster = Cluster(backend, config.cluster.join_timeout, Ledger(algorithm.crosses))
    take_part(config, algorithm, cluster, me)
    cluster.close()


def take_part(config: Config, algorithm: Algorithm, cluster: Cluster, me: Rank) -> None:
    """One job in a process group that has been joined already."""
    device = _device(config.cluster.device)
    if cluster.rank == 0:
        run_dir = choose_run_dir(config)
        with RunLock(run_dir):
            _serve(config, algorithm, cluster, device, run_dir)
    else:
        _work(config, algorithm, cluster, device, me)


def _serve(config: Config, algorithm: Algorithm, cluster: Cluster, device: str, run_dir: Path) -> None:
    state = examine(config, run_dir)
    if state is RunState.FINISHED:
        cluster.broadcast_json({"finished": True})
        _say_finished(run_dir)
        return
    store, manifest = ensure_store(config, reads=algorithm.reads)
    cluster.broadcast_json({"run_dir": str(run_dir)})  # from here on the parts are there to be offered
    log_to(run_dir / "logs" / "server.log")
    whole = read_shard(store / "global", config.verify)
    offers = cluster.gather_json(offer(config, {}, {}))
    checkpoints = checkpoint_folder(config, run_dir)
    try:
        rank_of_part = agree(offers, whole.store_id, config.cluster.num_machines)
        start_round = newest_common_round(CheckpointFiles(checkpoints, SERVER).rounds(), offers, rank_of_part)
        _require_start(config, state, start_round)
        server = _server(config, algorithm, store, whole, manifest, run_dir, start_round, device)
    except UserError as error:
        cluster.broadcast_json({"error": str(error)})
        raise
    reply = {"rank_of_part": rank_of_part, "start_round": start_round, "planned_rounds": server.planned_rounds}
    cluster.broadcast_json(reply)
    write_json(run_dir / "logs" / "ranks.json", {"rank_of_part": rank_of_part})
    log.info("store %s, rank of each part %s, going on after round %d", store, rank_of_part, start_round)
    if algorithm.reads is Reads.WHOLE_TOPOLOGY:
        cluster.among_machines()
    names = {rank: name_of(rank, part) for part, rank in enumerate(rank_of_part)}
    cluster.watch(names, config.cluster.timeout, interrupt)
    _train(server, algorithm, DistServerChannel(cluster, rank_of_part, server.sizes), config, run_dir)


def _work(config: Config, algorithm: Algorithm, cluster: Cluster, device: str, me: Rank) -> None:
    greeting = cluster.broadcast_json({})
    if "finished" in greeting:
        return
    run_dir, store = Path(greeting["run_dir"]), store_path(config)
    held = {part: read_shard(store / f"part{part}").store_id for part in _offerable(store, cluster.rank)}
    checkpoints = checkpoint_folder(config, run_dir)
    rounds = {part: CheckpointFiles(checkpoints, part_owner(part)).rounds() for part in held}
    cluster.gather_json(offer(config, held, rounds))
    reply = cluster.broadcast_json({})
    if "error" in reply:
        raise UserError(reply["error"])
    me.part = reply["rank_of_part"].index(cluster.rank)
    log_to(run_dir / "logs" / f"part{me.part}.log")
    shard, fetched = read_shard(store / f"part{me.part}", config.verify), FeatureTraffic()
    sizes = (shard.graph.num_nodes, shard.graph.num_edges)
    log.info("%s: %d nodes, %d edges, going on after round %d", me, *sizes, reply["start_round"])
    peers = cluster.among_machines() if algorithm.reads is Reads.WHOLE_TOPOLOGY else None

    def remote(own: Tensor) -> PeerRows:
        assert peers is not None
        return PeerRows(peers, reply["rank_of_part"], own, fetched, cluster.ledger)

    view = part_view(config, algorithm.reads, store, me.part, shard, remote)
    steps = algorithm.local_steps(reply["planned_rounds"])
    start_round, shares = reply["start_round"], algorithm.shares_gradients
    machine = Machine(config, view, me.part, steps, checkpoints, start_round, device, shares, fetched)
    cluster.watch({0: name_of(0, None)}, config.cluster.timeout, interrupt)
    channel = DistMachineChannel(cluster, machine.sizes)
    run_machine(reply["start_round"] + 1, config.num_rounds, machine, channel)
    machine.saver.finish()


def _run_alone(config: Config, algorithm: Algorithm, run_dir: Path) -> None:
    """Rank 0 is all there is: `single`, `server_only`, and any method on loopback."""
    state = examine(config, run_dir)
    if state is RunState.FINISHED:
        _say_finished(run_dir)
        return
    store, manifest = ensure_store(config, reads=algorithm.reads)
    log_to(run_dir / "logs" / "server.log")
    whole = read_shard(store / "global", config.verify)
    device = _device(config.cluster.device)
    fetched = [FeatureTraffic() for _ in range(config.cluster.num_machines)]
    views: list[View] = []
    if algorithm.trains_on_parts:
        views = _views_of_all_parts(config, algorithm, store, fetched)
    elif any(algorithm.local_steps()):
        views = [GraphView(whole.graph)]
    if not algorithm.trains_on_parts:
        manifest = manifest | {"parts": [{"train_nodes": len(view.train_nodes)} for view in views]}
    checkpoints = checkpoint_folder(config, run_dir)
    owners = [SERVER, *(part_owner(part) for part in range(len(views)))]
    common = set.intersection(*(set(CheckpointFiles(checkpoints, owner).rounds()) for owner in owners))
    start_round = max(common, default=0)
    _require_start(config, state, start_round)
    server = _server(config, algorithm, store, whole, manifest, run_dir, start_round, device)
    steps, shares = algorithm.local_steps(server.planned_rounds), algorithm.shares_gradients
    machines = [
        Machine(config, view, part, steps, checkpoints, start_round, device, shares, traffic)
        for part, (view, traffic) in enumerate(zip(views, fetched, strict=False))
    ]
    rounds = [machine.learn for machine in machines]
    measures = [machine.measure for machine in machines]
    channel = LoopbackChannel(rounds, Ledger(algorithm.crosses), algorithm.trains_on_parts, measures)
    _train(server, algorithm, channel, config, run_dir)
    for machine in machines:
        machine.saver.finish()


def _views_of_all_parts(
    config: Config, algorithm: Algorithm, store: Path, fetched: Sequence[FeatureTraffic]
) -> list[View]:
    shards = [read_shard(store / f"part{part}", config.verify) for part in range(config.cluster.num_machines)]
    features = [torch.from_numpy(shard.graph.features) for shard in shards]

    def view(part: int) -> View:
        rows = LoopbackRows(features, fetched[part])
        return part_view(config, algorithm.reads, store, part, shards[part], lambda own: rows)

    return [view(part) for part in range(len(shards))]


def _server(
    config: Config,
    algorithm: Algorithm,
    store: Path,
    whole: Shard,
    manifest: dict[str, Any],
    run_dir: Path,
    start_round: int,
    device: str,
) -> Server:
    train_nodes = [part["train_nodes"] for part in manifest["parts"]]
    checkpoints = checkpoint_folder(config, run_dir)
    nodes = correction_nodes(config.sampling.server_minibatch, whole)
    owner = whole.extra["assignment"] if algorithm.trains_on_parts else None
    server = Server(config, whole.graph, train_nodes, run_dir, checkpoints, start_round, device, nodes, owner)
    if algorithm.reads is Reads.PART_AND_HALO:
        server.halo_bytes = sum(halo_bytes(config, store))
    return server


def _train(server: Server, algorithm: Algorithm, channel: ServerChannel, config: Config, run_dir: Path) -> None:
    progress = Progress(config, server.start_round)
    summary = server.train(algorithm, channel, progress.round)
    progress.close(summary, run_dir)


def checkpoint_folder(config: Config, run_dir: Path) -> Path:
    return Path(config.checkpoint.dir) if config.checkpoint.dir else run_dir / "checkpoints"


def _require_start(config: Config, state: RunState, start_round: int) -> None:
    if config.resume == "must" and state is RunState.UNFINISHED and start_round == 0:
        raise UserError("resume=must: no round is whole at every rank (checkpoint.dir); use resume=auto to start anew")


def _say_finished(run_dir: Path) -> None:
    say(f"{run_dir} holds a finished run: nothing to do (raise num_rounds to go on, or choose another run_dir)")


def _offerable(store: Path, rank: int) -> list[int]:
    """The own part where the disk has it: a rank on a shared disk has no business in the other folders."""
    return [rank - 1] if (store / f"part{rank - 1}" / "graph.json").exists() else held_parts(store)


def _device(requested: str) -> str:
    if requested == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if requested == "cuda" and not torch.cuda.is_available():
        raise UserError("cluster.device=cuda: torch sees no GPU here; use cluster.device=cpu")
    return requested


def _require_world(wanted: int) -> None:
    started = int(os.environ.get("WORLD_SIZE", 1))
    if started != wanted:
        machines = f"a server and {wanted - 1} machines" if wanted > 1 else "rank 0 alone"
        advice = f"use `llcg train`, or torchrun with {wanted} processes in all (--nproc-per-node on one host)"
        raise UserError(
            f"cluster.num_machines: the job is {machines}, but {started} process(es) were started; {advice}"
        )


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    # Not sys.exit: after a failure, torch's own threads may still wait for ranks that are gone.
    os._exit(code)
