"""What the ranks of a job bring to it, and what follows from that: the server, the backend, the cipher."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from llcg_dist.comm.network import use_interface
from llcg_dist.comm.rendezvous import choose_backend, pick_server
from llcg_dist.comm.session import choose_cipher, has_fast_aes
from llcg_dist.errors import UserError


@dataclass(frozen=True)
class RankResources:
    """What a rank brings to its job. The first rank with the full graph, and the run if there is one, serves."""

    interface: str | None = None
    """cluster.interface: Gloo's and NCCL's; by default the one that leads to MASTER_ADDR."""
    graph: bool = True
    run: bool = True
    own_gpu: bool = False
    key: bytes | None = field(default=None, repr=False)
    """The job's key, which seals the values of its store and the messages between ranks."""


@dataclass(frozen=True)
class Ticket:
    """What the ranks of one start have agreed on; who joins later has it (Cluster.return_to_server)."""

    prefix: str
    decision: dict[str, Any]
    incarnation: int = 0
    """Which process of the rank it is; one that joins later finds out by itself."""


def describe(resources: RankResources) -> dict[str, Any]:
    """What a rank says of itself; Gloo and NCCL use the interface from here on."""
    try:
        use_interface(resources.interface, os.environ["MASTER_ADDR"])
    except UserError as error:
        return {"error": str(error)}
    own = {"graph": resources.graph, "run": resources.run, "own_gpu": resources.own_gpu}
    return own | {"fast_aes": has_fast_aes()}


def decide(requested: str, sealed: bool, everyone: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What follows from what all ranks say: who serves, over which backend, and the cipher of a sealed job."""
    backend = choose_backend(requested, [bool(said["own_gpu"]) for said in everyone], sealed)
    cipher = choose_cipher([bool(said["fast_aes"]) for said in everyone])
    return {"server": pick_server(everyone), "backend": backend, "cipher": cipher}
