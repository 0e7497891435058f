"""What the server decides about what the ranks announced: are they alike, who trains which part, from which round on.

torchrun orders hosts as it likes, and anew at every restart, so parts do not follow ranks: each rank announces the
parts that its disk holds, the server assigns them, and each rank shows that its part is the one the server means.
"""

import hashlib
import json
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching, min_weight_full_bipartite_matching

from llcg_dist import __version__
from llcg_dist.config.compare import shared_settings
from llcg_dist.config.schema import Config
from llcg_dist.errors import UserError

_KEYS_SHOWN = 3
"""Settings that differ are named up to this many."""


@dataclass(frozen=True)
class Identity:
    """What must be the same at every rank."""

    versions: dict[str, Any]
    settings: dict[str, Any]

    @staticmethod
    def of(config: Config) -> "Identity":
        versions = {"llcg_dist": __version__, "torch": torch.__version__, "python": platform.python_version()}
        return Identity(versions, shared_settings(config))


def require_same(identities: Sequence[Identity]) -> None:
    """By rank, the server's first. Raises UserError that names a rank that differs, what in, and both values."""
    for what in ("versions", "settings"):
        ours = getattr(identities[0], what)
        for rank, other in enumerate(identities):
            theirs = getattr(other, what)
            keys = sorted(key for key in {*ours, *theirs} if ours.get(key) != theirs.get(key))
            if keys:
                named = ", ".join(f"{key} {theirs.get(key)} (rank 0: {ours.get(key)})" for key in keys[:_KEYS_SHOWN])
                more = f" and {len(keys) - _KEYS_SHOWN} more" if len(keys) > _KEYS_SHOWN else ""
                raise UserError(f"rank {rank} has {named}{more}: start all ranks alike")


def require_world(started: int, wanted: int) -> None:
    if started != wanted:
        machines = f"a server and {wanted - 1} machines" if wanted > 1 else "rank 0 alone"
        advice = f"use `llcg train`, or torchrun with {wanted} processes in all (--nproc-per-node on one host)"
        raise UserError(
            f"cluster.num_machines: the job is {machines}, but {started} process(es) were started; {advice}"
        )


@dataclass(frozen=True)
class Offered:
    """What a rank's disk holds: parts, and of which of them there are checkpoints."""

    parts: list[int]
    started: list[int]


@dataclass(frozen=True)
class PartReport:
    """A machine has read its part: the checksum of what it read, and the rounds whose checkpoints it has."""

    checksum: str
    checkpoints: list[int]


def assign_ranks(offers: Sequence[Offered], num_parts: int) -> list[int]:
    """The rank that trains each part. `offers` are those of ranks 1, 2, …; as many ranks as possible go on with a part
    that they have checkpoints of, and of such matchings the one is taken in which most ranks p+1 have part p."""
    held = [{part for part in offer.parts if part < num_parts} for offer in offers]
    any_matching = match_parts(held, num_parts)
    if not any(offer.started for offer in offers):
        return any_matching
    costs = np.zeros((num_parts, len(held)), dtype=np.int64)  # 0: impossible
    for machine, (parts, offer) in enumerate(zip(held, offers, strict=True)):
        for part in parts:
            costs[part, machine] = 1 + (part != machine) + (part not in offer.started) * (2 * num_parts)
    _, machine_of_part = min_weight_full_bipartite_matching(csr_array(costs))
    return [int(machine) + 1 for machine in machine_of_part]


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


def require_parts(reports: Sequence[PartReport], rank_of_part: Sequence[int], shards: Sequence[Any]) -> None:
    """`reports` of the parts in order: has each machine read what the server's manifest describes (`shards`)?"""
    for part, (report, rank, described) in enumerate(zip(reports, rank_of_part, shards, strict=True)):
        expected = checksum(described)
        if report.checksum != expected:
            what = f"its part {part} has checksum {report.checksum}, rank 0's manifest says {expected}"
            raise UserError(f"rank {rank}: {what}; copy the part from the store that rank 0 uses")


def described_shards(manifest: dict[str, Any], names: Sequence[str]) -> list[Any]:
    """What the manifest says of these folders of the store."""
    described = manifest.get("shards")
    missing = [name for name in names if not isinstance(described, dict) or name not in described]
    if missing:
        raise UserError(f"manifest.json: does not describe {missing[0]}; build the store again")
    return [manifest["shards"][name] for name in names]
