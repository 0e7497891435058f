"""The start of a job: all ranks compare what they are, and the server decides which rank trains which part.

torchrun orders hosts as it likes, and anew at every restart, so parts do not follow ranks: each rank announces the
parts that its disk holds, the server assigns them, and each rank shows that what it holds of its part is what the
server means. A mistake at one rank reaches all of them in one line.
"""

import contextlib
import hashlib
import json
import os
import platform
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from llcg_dist import __version__
from llcg_dist.comm.torch_dist import Cluster, RankResources
from llcg_dist.config.compare import shared_settings
from llcg_dist.config.schema import Config
from llcg_dist.data.derived import DataAccess, FullTopology, Halo, read_derived
from llcg_dist.data.partition import store_path
from llcg_dist.data.store import Shard, read_shard
from llcg_dist.errors import UserError
from llcg_dist.job.checkpoint import CheckpointFiles
from llcg_dist.job.devices import use_device
from llcg_dist.job.process import interrupt, name_of

_SHOWN = 3
"""Settings that differ are named up to this many."""


def identity(config: Config) -> dict[str, Any]:
    """What must be the same at every rank."""
    versions = {"llcg_dist": __version__, "torch": torch.__version__, "python": platform.python_version()}
    return {"versions": versions, "settings": shared_settings(config)}


def require_same(identities: Sequence[dict[str, Any]]) -> None:
    """By rank, the server's first. Raises UserError that names a rank that differs, what in, and both values."""
    for what in ("versions", "settings"):
        ours = identities[0][what]
        for rank, other in enumerate(identities):
            theirs = other[what]
            keys = sorted(key for key in {*ours, *theirs} if ours.get(key) != theirs.get(key))
            if keys:
                named = ", ".join(f"{key} {theirs.get(key)} (rank 0: {ours.get(key)})" for key in keys[:_SHOWN])
                more = f" and {len(keys) - _SHOWN} more" if len(keys) > _SHOWN else ""
                raise UserError(f"rank {rank} has {named}{more}: start all ranks alike")


def require_world(started: int, wanted: int) -> None:
    if started != wanted:
        machines = f"a server and {wanted - 1} machines" if wanted > 1 else "rank 0 alone"
        advice = f"use `llcg train`, or torchrun with {wanted} processes in all (--nproc-per-node on one host)"
        raise UserError(
            f"cluster.num_machines: the job is {machines}, but {started} process(es) were started; {advice}"
        )


def assign_ranks(offers: Sequence[dict[str, Any]], num_parts: int) -> list[int]:
    """The rank that trains each part. Offers are by rank, the server's first: the `parts` on its disk, and of those
    `started` the ones that it has checkpoints of, which it goes on with where that works out for all."""
    held = [{part for part in offer["parts"] if part < num_parts} for offer in offers[1:]]
    started = [parts & set(offer["started"]) for parts, offer in zip(held, offers[1:], strict=True)]
    try:
        return match_parts(started, num_parts)
    except UserError:
        return match_parts(held, num_parts)


def match_parts(held: Sequence[set[int]], num_parts: int) -> list[int]:
    """held[i]: the parts on the disk of rank i+1. Rank p+1 takes part p where it can; else any complete matching."""
    if len(held) == num_parts and all(part in parts for part, parts in enumerate(held)):
        return [part + 1 for part in range(num_parts)]
    table = np.array([[part in parts for parts in held] for part in range(num_parts)], dtype=np.int8)
    machine_of_part = maximum_bipartite_matching(csr_array(table), perm_type="column")
    missing = [part for part, machine in enumerate(machine_of_part) if machine < 0]
    if missing:
        places = "; ".join(f"rank {i + 1} holds {sorted(parts) or 'none'}" for i, parts in enumerate(held))
        raise UserError(
            f"no rank is left for part {missing[0]} ({places}); copy the part to its host, or share partition.root"
        )
    return [int(machine) + 1 for machine in machine_of_part]


def checksum(described: Any) -> str:
    """Of a folder's graph.json, which has the checksums of its arrays; the manifest repeats it."""
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()[:16]


def require_parts(shown: Sequence[dict[str, Any]], rank_of_part: Sequence[int], manifest: dict[str, Any]) -> None:
    """Every machine has read its part (`checksum`, or the `error` it met): is it the one of the server's manifest?"""
    for part, rank in enumerate(rank_of_part):
        if shown[rank].get("error"):
            raise UserError(f"rank {rank}: {shown[rank]['error']}")
        expected, found = checksum(_described(manifest, part)), shown[rank]["checksum"]
        if found != expected:
            what = f"its part {part} has checksum {found}, rank 0's manifest says {expected}"
            raise UserError(f"rank {rank}: {what}; copy the part from the store that rank 0 uses")


def newest_common_round(server: Sequence[int], shown: Sequence[dict[str, Any]]) -> int:
    """The newest round that the server and every machine (ranks 1..) have whole; 0 where there is none."""
    common = set(server).intersection(*(machine["checkpoints"] for machine in shown[1:]))
    return max(common, default=0)


def _described(manifest: dict[str, Any], part: int) -> Any:
    try:
        return manifest["shards"][f"part{part}"]
    except (KeyError, TypeError):
        raise UserError(f"manifest.json: does not describe part {part}; build the store again") from None


def rank_resources(config: Config) -> RankResources:
    """This rank's, before it knows any other."""
    ranks_here = int(os.environ.get("LOCAL_WORLD_SIZE", 1))
    return RankResources(
        interface=config.cluster.interface,
        graph=(store_path(config) / "global" / "graph.json").exists(),
        run=config.run_dir is not None and (Path(config.run_dir) / "config.yaml").exists(),
        own_gpu=use_device(config.cluster.device) != "cpu" and ranks_here <= torch.cuda.device_count(),
    )


def compare_identities(config: Config, cluster: Cluster) -> None:
    """All ranks are alike, or all end. From here on nobody may be silent, but may load for as long as it takes."""
    identities = cluster.gather_json(identity(config))
    if cluster.rank == 0:
        with broadcast_errors(cluster):
            require_same(identities)
            require_world(cluster.size, 1 + config.cluster.num_machines)
        cluster.broadcast_json({"alike": True})
    else:
        receive_or_raise(cluster)
    watched = range(1, cluster.size) if cluster.rank == 0 else [0]
    cluster.watch({rank: name_of(rank, None) for rank in watched}, config.cluster.timeout, interrupt)


@contextlib.contextmanager
def broadcast_errors(cluster: Cluster) -> Iterator[None]:
    """The server's: the machines wait for its next message, and a user's mistake is one for them too."""
    try:
        yield
    except UserError as error:
        cluster.refuse(str(error))
        cluster.broadcast_json({"error": str(error)})
        raise


def receive_or_raise(cluster: Cluster) -> dict[str, Any]:
    """A machine's end of it."""
    message = cluster.broadcast_json({})
    if "error" in message:
        raise UserError(message["error"])
    return message


def announce_shard(
    config: Config, cluster: Cluster, store: Path, part: int, access: DataAccess, files: CheckpointFiles
) -> tuple[Shard, FullTopology | Halo | None]:
    """Reads what a machine needs and tells the server what its part is; a damaged file ends all ranks."""
    try:
        shard = read_shard(store / f"part{part}", config.verify)
        extras = read_derived(config, access, store, part, shard.store_id)
    except UserError as error:
        cluster.gather_json({"error": str(error)})
        receive_or_raise(cluster)
        raise
    cluster.gather_json({"checksum": checksum(shard.meta), "checkpoints": files.rounds()})
    return shard, extras
