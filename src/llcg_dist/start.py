"""The start of a distributed job: what a rank brings, and how a mistake at one rank reaches all of them in one line."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from llcg_dist.checkpoint import CheckpointFiles
from llcg_dist.comm.devices import choose_device
from llcg_dist.comm.handshake import checksum, identity, require_same, require_world
from llcg_dist.comm.torch_dist import Cluster, Means
from llcg_dist.config.schema import Config
from llcg_dist.data.derived import Halo, Reads, WholeTopology, read_extras
from llcg_dist.data.partition import store_path
from llcg_dist.data.store import Shard, read_shard
from llcg_dist.errors import UserError
from llcg_dist.process import interrupt, name_of


def means_of(config: Config) -> Means:
    """This rank's, before it knows any other."""
    ranks_here = int(os.environ.get("LOCAL_WORLD_SIZE", 1))
    return Means(
        interface=config.cluster.interface,
        graph=(store_path(config) / "global" / "graph.json").exists(),
        run=config.run_dir is not None and (Path(config.run_dir) / "config.yaml").exists(),
        own_gpu=device_of(config.cluster.device) != "cpu" and ranks_here <= torch.cuda.device_count(),
    )


def device_of(requested: str) -> str:
    device = choose_device(requested, torch.cuda.device_count(), int(os.environ.get("LOCAL_RANK", 0)))
    if device != "cpu":
        torch.cuda.set_device(device)
    return device


def compare(config: Config, cluster: Cluster) -> None:
    """All ranks are alike, or all end. From here on nobody may be silent, but may load for as long as it takes."""
    identities = cluster.gather_json(identity(config))
    if cluster.rank == 0:
        with told_to_all(cluster):
            require_same(identities)
            require_world(cluster.size, 1 + config.cluster.num_machines)
        cluster.broadcast_json({"alike": True})
    else:
        listen(cluster)
    watched = range(1, cluster.size) if cluster.rank == 0 else [0]
    cluster.watch({rank: name_of(rank, None) for rank in watched}, config.cluster.timeout, interrupt)


@contextlib.contextmanager
def told_to_all(cluster: Cluster) -> Iterator[None]:
    """The server's: the machines wait for its next message, and a user's mistake is one for them too."""
    try:
        yield
    except UserError as error:
        cluster.refuse(str(error))
        cluster.broadcast_json({"error": str(error)})
        raise


def listen(cluster: Cluster) -> dict[str, Any]:
    """A machine's end of it."""
    message = cluster.broadcast_json({})
    if "error" in message:
        raise UserError(message["error"])
    return message


def show_part(
    config: Config, cluster: Cluster, store: Path, part: int, reads: Reads, files: CheckpointFiles
) -> tuple[Shard, WholeTopology | Halo | None]:
    """Reads what a machine needs and tells the server what its part is; a damaged file ends all ranks."""
    try:
        shard = read_shard(store / f"part{part}", config.verify)
        extras = read_extras(config, reads, store, part, shard.store_id)
    except UserError as error:
        cluster.gather_json({"error": str(error)})
        listen(cluster)
        raise
    cluster.gather_json({"checksum": checksum(shard.meta), "checkpoints": files.rounds()})
    return shard, extras
