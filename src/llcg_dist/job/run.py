"""One job as a rank lives it: alone with all machines in its process, as the server, or as a machine of a cluster."""

import logging
import os
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from llcg_dist.algorithms import Algorithm, build_algorithm
from llcg_dist.comm.audit import Audit
from llcg_dist.comm.ledger import Ledger
from llcg_dist.comm.process_channel import DistMachineChannel, DistServerChannel, PeerRows
from llcg_dist.comm.remote_rows import FeatureTraffic
from llcg_dist.comm.torch_dist import Cluster
from llcg_dist.config.schema import Config
from llcg_dist.data.atomic_files import write_json
from llcg_dist.data.derived import DataAccess
from llcg_dist.data.machine_view import part_view
from llcg_dist.data.partition import ensure_store, store_path
from llcg_dist.data.store import parts_on_disk, read_shard
from llcg_dist.errors import UserError
from llcg_dist.job.build import build_server, checkpoint_folder, require_resumable, say_finished, train_on
from llcg_dist.job.checkpoint import SERVER, CheckpointFiles, part_owner, parts_with_checkpoints
from llcg_dist.job.devices import threads_per_rank, use_device
from llcg_dist.job.handshake import (
    announce_shard,
    assign_ranks,
    broadcast_errors,
    compare_identities,
    newest_common_round,
    rank_resources,
    receive_or_raise,
    require_parts,
    require_world,
)
from llcg_dist.job.in_process import run_alone
from llcg_dist.job.machine import Assignment, Machine
from llcg_dist.job.process import (
    Rank,
    interrupt,
    keep_freed_memory,
    log_to,
    name_of,
)
from llcg_dist.job.round_loop import run_machine
from llcg_dist.job.run_dir import RunLock, RunState, choose_run_dir, inspect_run_dir
from llcg_dist.records.console import say
from llcg_dist.records.partition import record_partition

log = logging.getLogger(__name__)


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
    cluster = Cluster(
        settings.backend, settings.join_timeout, Ledger(algorithm.allowed_messages), rank_resources(config)
    )
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
    device = use_device(config.cluster.device)
    compare_identities(config, cluster)
    if cluster.rank == 0:
        with broadcast_errors(cluster):
            run_dir = choose_run_dir(config)
            lock = RunLock(run_dir)
        with lock:
            _serve(config, algorithm, cluster, device, run_dir, audit)
    else:
        _work(config, algorithm, cluster, device, me, audit)


def _serve(
    config: Config, algorithm: Algorithm, cluster: Cluster, device: str, run_dir: Path, audit: Audit | None
) -> None:
    with broadcast_errors(cluster):
        state = inspect_run_dir(config, run_dir)
        if state is not RunState.FINISHED:
            store, manifest = ensure_store(config, access=algorithm.data_access)
    if state is RunState.FINISHED:
        cluster.broadcast_json({"finished": True})
        say_finished(run_dir)
        if audit:
            audit.recall(run_dir)
        return
    cluster.broadcast_json({"run_dir": str(run_dir)})  # from here on the parts are there to be offered
    log_to(run_dir / "logs" / "server.log")
    offers = cluster.gather_json({})
    with broadcast_errors(cluster):
        rank_of_part = assign_ranks(offers, config.cluster.num_machines)
        whole = read_shard(store / "global", config.verify)
    cluster.broadcast_json({"rank_of_part": rank_of_part})
    shown = cluster.gather_json({})
    with broadcast_errors(cluster):
        require_parts(shown, rank_of_part, manifest)
        files = CheckpointFiles(checkpoint_folder(config, run_dir), SERVER)
        start_round = newest_common_round(files.rounds(), shown)
        require_resumable(config, state, start_round)
        server = build_server(config, algorithm, store, whole, manifest, run_dir, start_round, device)
    cluster.broadcast_json(_without_none(asdict(server.assignment())))
    write_json(run_dir / "logs" / "ranks.json", {"rank_of_part": rank_of_part, "server": cluster.server})
    record_partition(run_dir, manifest, whole)
    log.info("store %s, rank of each part %s, going on after round %d", store, rank_of_part, start_round)
    if algorithm.data_access is DataAccess.FULL_TOPOLOGY:
        cluster.machine_group()
    names = {rank: name_of(rank, part) for part, rank in enumerate(rank_of_part)}
    cluster.watch(names, config.cluster.timeout, interrupt)
    if audit:
        server.audit = partial(audit.take_part, cluster)
    train_on(server, algorithm, DistServerChannel(cluster, rank_of_part, server.sizes), config, run_dir)
    if audit and audit.passed:
        say(str(audit))


def _work(config: Config, algorithm: Algorithm, cluster: Cluster, device: str, me: Rank, audit: Audit | None) -> None:
    greeting = receive_or_raise(cluster)
    if "finished" in greeting:
        return
    run_dir, store = Path(config.run_dir or greeting["run_dir"]), store_path(config)
    checkpoints = checkpoint_folder(config, run_dir)
    cluster.gather_json({"parts": parts_on_disk(store), "started": parts_with_checkpoints(checkpoints)})
    rank_of_part: list[int] = receive_or_raise(cluster)["rank_of_part"]
    me.part = rank_of_part.index(cluster.rank)
    log_to(run_dir / "logs" / f"part{me.part}.log")
    files = CheckpointFiles(checkpoints, part_owner(me.part))
    shard, extras = announce_shard(config, cluster, store, me.part, algorithm.data_access, files)
    assignment = Assignment(**receive_or_raise(cluster))
    sizes = (shard.graph.num_nodes, shard.graph.num_edges)
    log.info("%s: %d nodes, %d edges, going on after round %d", me, *sizes, assignment.start_round)
    fetched, peers = (
        FeatureTraffic(),
        cluster.machine_group() if algorithm.data_access is DataAccess.FULL_TOPOLOGY else None,
    )

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
