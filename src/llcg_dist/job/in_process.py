"""A job of one process: `single`, `server_only`, and any method on loopback."""

from collections.abc import Sequence
from pathlib import Path

import torch

from llcg_dist.algorithms import Algorithm
from llcg_dist.comm.ledger import Ledger
from llcg_dist.comm.loopback import LoopbackChannel, LoopbackRows
from llcg_dist.comm.remote_rows import FeatureTraffic
from llcg_dist.config.schema import Config
from llcg_dist.data.derived import read_derived
from llcg_dist.data.machine_view import part_view
from llcg_dist.data.partition import ensure_store
from llcg_dist.data.store import read_shard
from llcg_dist.data.views import GraphView, View
from llcg_dist.job.build import build_server, checkpoint_folder, require_resumable, say_finished, train_on
from llcg_dist.job.checkpoint import SERVER, CheckpointFiles, part_owner
from llcg_dist.job.devices import use_device
from llcg_dist.job.machine import Machine
from llcg_dist.job.process import log_to
from llcg_dist.job.run_dir import RunState, inspect_run_dir
from llcg_dist.records.partition import record_partition


def run_alone(config: Config, algorithm: Algorithm, run_dir: Path) -> None:
    """Rank 0 is all there is: `single`, `server_only`, and any method on loopback."""
    state = inspect_run_dir(config, run_dir)
    if state is RunState.FINISHED:
        say_finished(run_dir)
        return
    store, manifest = ensure_store(config, access=algorithm.data_access)
    log_to(run_dir / "logs" / "server.log")
    whole = read_shard(store / "global", config.verify)
    device = use_device(config.cluster.device)
    fetched = [FeatureTraffic() for _ in range(config.cluster.num_machines)]
    views: list[View] = []
    if algorithm.trains_on_parts:
        record_partition(run_dir, manifest, whole)
        views = _views_of_all_parts(config, algorithm, store, fetched)
    elif any(algorithm.local_steps()):
        views = [GraphView(whole.graph)]
    if not algorithm.trains_on_parts:
        manifest = manifest | {"parts": [{"train_nodes": len(view.train_nodes)} for view in views]}
    checkpoints = checkpoint_folder(config, run_dir)
    owners = [SERVER, *(part_owner(part) for part in range(len(views)))]
    common = set.intersection(*(set(CheckpointFiles(checkpoints, owner).rounds()) for owner in owners))
    start_round = max(common, default=0)
    require_resumable(config, state, start_round)
    server = build_server(config, algorithm, store, whole, manifest, run_dir, start_round, device)
    machines = [
        Machine(config, algorithm, view, part, server.assignment(), checkpoints, device, traffic)
        for part, (view, traffic) in enumerate(zip(views, fetched, strict=False))
    ]
    channel = LoopbackChannel(machines, Ledger(algorithm.allowed_messages), algorithm.trains_on_parts)
    train_on(server, algorithm, channel, config, run_dir)
    for machine in machines:
        machine.saver.finish()


def _views_of_all_parts(
    config: Config, algorithm: Algorithm, store: Path, fetched: Sequence[FeatureTraffic]
) -> list[View]:
    shards = [read_shard(store / f"part{part}", config.verify) for part in range(config.cluster.num_machines)]
    features = [torch.from_numpy(shard.graph.features) for shard in shards]

    def view(part: int) -> View:
        rows = LoopbackRows(features, fetched[part])
        extras = read_derived(config, algorithm.data_access, store, part, shards[part].store_id)
        return part_view(config, part, shards[part], extras, lambda own: rows)

    return [view(part) for part in range(len(shards))]
