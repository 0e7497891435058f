"""What a rank runs: `torchrun … -m llcg_dist.train [overrides]`. Rank 0 is the server, ranks 1..P are the machines."""

import logging
import os
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from llcg_dist.algorithms import Algorithm, build_algorithm
from llcg_dist.alone import run_alone
from llcg_dist.checkpoint import SERVER, CheckpointFiles, Saver, part_owner, started_parts
from llcg_dist.cli.console import say
from llcg_dist.comm.audit import Audit
from llcg_dist.comm.devices import threads_per_rank
from llcg_dist.comm.dist_channel import DistMachineChannel, DistServerChannel, PeerRows
from llcg_dist.comm.features import FeatureTraffic
from llcg_dist.comm.handshake import newest_common_round, place_parts, require_parts, require_world
from llcg_dist.comm.ledger import Ledger
from llcg_dist.comm.torch_dist import Cluster
from llcg_dist.config.compose import load_config
from llcg_dist.config.schema import Config
from llcg_dist.data.atomic_files import write_json
from llcg_dist.data.derived import Reads
from llcg_dist.data.machine_view import part_view
from llcg_dist.data.partition import ensure_store, store_path
from llcg_dist.data.store import held_parts, read_shard
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
    keep_freed_memory,
    log_to,
    name_of,
)
from llcg_dist.record import record_partition
from llcg_dist.run_dir import RunLock, RunState, choose_run_dir, examine
from llcg_dist.serving import build_server, checkpoint_folder, require_start, say_finished, train_on
from llcg_dist.start import compare, device_of, listen, means_of, show_part, told_to_all
from llcg_dist.worker import Assignment, Machine

log = logging.getLogger("llcg_dist.train")  # __name__ is __main__ in a rank

_WAIT_FOR_CULPRIT = 5.0
"""Seconds a rank that lost its peer stays, so that the launcher sees the dead rank first and names it."""

_AFTER_SERVER = 2.0
"""Seconds a machine stays when all ranks end for the same reason: the server has the terminal, and says it once."""


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
        if me.rank != 0:
            time.sleep(_AFTER_SERVER)
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
    torch.set_num_threads(threads_per_rank(config.cluster.threads, int(os.environ.get("LOCAL_WORLD_SIZE", 1))))
    keep_freed_memory()
    torch.set_flush_denormal(True)  # denormals slow a step down many times and mean nothing to the result
    algorithm = build_algorithm(config)
    if algorithm.trains_on_parts and config.cluster.backend != "loopback":
        _run_distributed(config, algorithm, me)
    else:
        require_world(int(os.environ.get("WORLD_SIZE", 1)), 1)
        run_dir = choose_run_dir(config)
        with RunLock(run_dir):
            run_alone(config, algorithm, run_dir)


def _run_distributed(config: Config, algorithm: Algorithm, me: Rank) -> None:
    settings = config.cluster
    audit = Audit(settings.timeout) if settings.audit else None  # before the first byte
    cluster = Cluster(settings.backend, settings.join_timeout, Ledger(algorithm.crosses), means_of(config))
    if audit and "nccl" in cluster.backend:
        raise UserError("cluster.audit=true: NCCL's bytes cannot be counted on sockets; use cluster.backend=gloo")
    me.rank = cluster.rank
    take_part(config, algorithm, cluster, me, audit)
    cluster.close()
    if audit:
        audit.require_passed()


def take_part(config: Config, algorithm: Algorithm, cluster: Cluster, me: Rank, audit: Audit | None = None) -> None:
    """One job in a process group that has been joined already."""
    if audit:
        audit.joined()
    device = device_of(config.cluster.device)
    compare(config, cluster)
    if cluster.rank == 0:
        with told_to_all(cluster):
            run_dir = choose_run_dir(config)
            lock = RunLock(run_dir)
        with lock:
            _serve(config, algorithm, cluster, device, run_dir, audit)
    else:
        _work(config, algorithm, cluster, device, me, audit)


def _serve(
    config: Config, algorithm: Algorithm, cluster: Cluster, device: str, run_dir: Path, audit: Audit | None
) -> None:
    with told_to_all(cluster):
        state = examine(config, run_dir)
        if state is not RunState.FINISHED:
            store, manifest = ensure_store(config, reads=algorithm.reads)
    if state is RunState.FINISHED:
        cluster.broadcast_json({"finished": True})
        say_finished(run_dir)
        if audit:
            audit.recall(run_dir)
        return
    cluster.broadcast_json({"run_dir": str(run_dir)})  # from here on the parts are there to be offered
    log_to(run_dir / "logs" / "server.log")
    offers = cluster.gather_json({})
    with told_to_all(cluster):
        rank_of_part = place_parts(offers, config.cluster.num_machines)
        whole = read_shard(store / "global", config.verify)
    cluster.broadcast_json({"rank_of_part": rank_of_part})
    shown = cluster.gather_json({})
    with told_to_all(cluster):
        require_parts(shown, rank_of_part, manifest)
        files = CheckpointFiles(checkpoint_folder(config, run_dir), SERVER)
        start_round = newest_common_round(files.rounds(), shown)
        require_start(config, state, start_round)
        server = build_server(config, algorithm, store, whole, manifest, run_dir, start_round, device)
    cluster.broadcast_json(_without_none(asdict(server.assignment())))
    write_json(run_dir / "logs" / "ranks.json", {"rank_of_part": rank_of_part, "server": cluster.server})
    record_partition(run_dir, manifest, whole)
    log.info("store %s, rank of each part %s, going on after round %d", store, rank_of_part, start_round)
    if algorithm.reads is Reads.WHOLE_TOPOLOGY:
        cluster.among_machines()
    names = {rank: name_of(rank, part) for part, rank in enumerate(rank_of_part)}
    cluster.watch(names, config.cluster.timeout, interrupt)
    if audit:
        server.audit = partial(audit.take_part, cluster)
    train_on(server, algorithm, DistServerChannel(cluster, rank_of_part, server.sizes), config, run_dir)
    if audit and audit.passed:
        say(str(audit))


def _work(config: Config, algorithm: Algorithm, cluster: Cluster, device: str, me: Rank, audit: Audit | None) -> None:
    greeting = listen(cluster)
    if "finished" in greeting:
        return
    run_dir, store = Path(config.run_dir or greeting["run_dir"]), store_path(config)
    checkpoints = checkpoint_folder(config, run_dir)
    cluster.gather_json({"parts": held_parts(store), "started": started_parts(checkpoints)})
    rank_of_part: list[int] = listen(cluster)["rank_of_part"]
    me.part = rank_of_part.index(cluster.rank)
    log_to(run_dir / "logs" / f"part{me.part}.log")
    files = CheckpointFiles(checkpoints, part_owner(me.part))
    shard, extras = show_part(config, cluster, store, me.part, algorithm.reads, files)
    assignment = Assignment(**listen(cluster))
    sizes = (shard.graph.num_nodes, shard.graph.num_edges)
    log.info("%s: %d nodes, %d edges, going on after round %d", me, *sizes, assignment.start_round)
    fetched, peers = FeatureTraffic(), cluster.among_machines() if algorithm.reads is Reads.WHOLE_TOPOLOGY else None

    def remote(own: Tensor) -> PeerRows:
        assert peers is not None
        return PeerRows(peers, rank_of_part, own, fetched, cluster.ledger)

    view = part_view(config, me.part, shard, extras, remote)
    machine = Machine(config, algorithm, view, me.part, assignment, checkpoints, device, fetched)
    cluster.watch({0: name_of(0, None)}, config.cluster.timeout, interrupt)
    channel = DistMachineChannel(cluster, machine.sizes)
    run_machine(assignment.start_round + 1, config.num_rounds, machine, channel)
    machine.saver.finish()
    if audit:
        audit.take_part(cluster)


def _without_none(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    # Not sys.exit: after a failure, torch's own threads may still wait for ranks that are gone.
    os._exit(code)
