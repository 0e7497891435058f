"""All ranks of one start of a job find each other, and nobody else's traces.

torchrun's store outlives a restart, and with it the addresses of processes that are gone. So the ranks first agree on a
prefix that is new: each rank writes a fresh word, rank 0 answers it with the prefix, and an answer counts only for the
word it repeats. On the way rank 0 learns who is missing. Under the new prefix each says what it has, and rank 0 what
follows from it: who is the server, and which backend joins them.
"""

import json
import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from llcg_dist.config.cluster import Backend
from llcg_dist.errors import PeerLostError, UserError

POLL_SECONDS = 0.02


class Store(Protocol):
    def set(self, key: str, value: str) -> None: ...

    def get(self, key: str) -> bytes: ...

    def check(self, keys: list[str]) -> bool: ...


def fresh_prefix(store: Store, rank: int, size: int, limit: float) -> str:
    """The same new prefix at every rank; raises PeerLostError with the missing ranks after `limit` seconds."""
    return _welcome_ranks(store, size, limit) if rank == 0 else _join(store, rank, limit)


def negotiate(
    store: Store,
    rank: int,
    size: int,
    says: dict[str, Any],
    decide: Callable[[Sequence[dict[str, Any]]], dict[str, Any]],
    limit: float,
) -> dict[str, Any]:
    """What rank 0 decides from what all ranks say, at every rank. A UserError, said or decided, is raised at all."""
    store.set(f"says/{rank}", json.dumps(says))
    if rank == 0:
        everyone = [json.loads(_wait_for(store, f"says/{other}", other, limit)) for other in range(size)]
        try:
            for other, said in enumerate(everyone):
                if said.get("error"):
                    raise UserError(f"rank {other}: {said['error']}")
            verdict = decide(everyone)
        except UserError as error:
            verdict = {"error": str(error)}
        store.set("verdict", json.dumps(verdict))
    verdict = json.loads(_wait_for(store, "verdict", 0, limit))
    if "error" in verdict:
        _stay_until_heard(store, rank, size, limit)
        raise UserError(verdict["error"])
    return verdict


def pick_server(everyone: Sequence[dict[str, Any]]) -> int:
    """The first rank whose disk holds the whole graph, and the run to go on with if there is one; else rank 0.

    torchrun orders hosts as it likes, so the rank it calls 0 may be on any of them.
    """
    score = [2 * bool(said["graph"]) + bool(said["graph"] and said["run"]) for said in everyone]
    return score.index(max(score))


def choose_backend(requested: str, own_gpu: Sequence[bool], sealed: bool = False) -> str:
    """torch.distributed's name for cluster.backend. `own_gpu[r]`: rank r has a GPU that no other rank uses.

    NCCL wants one for each rank, and has Gloo beside it for CPU tensors. Otherwise models cross through the CPU,
    wherever they are trained. So they do in a job with a key: what NCCL moves between GPUs cannot be sealed.
    """
    if requested == Backend.nccl and sealed:
        rule = "use cluster.backend=auto, which sends models through the CPU, or cluster.sealed=false"
        raise UserError(f"cluster.backend=nccl: what NCCL sends cannot be sealed; {rule}")
    if requested == Backend.nccl and not all(own_gpu):
        rank = list(own_gpu).index(False)
        raise UserError(f"cluster.backend=nccl: rank {rank} has no GPU of its own; use cluster.backend=auto")
    nccl = requested in (Backend.auto, Backend.nccl) and all(own_gpu) and not sealed
    return "cpu:gloo,cuda:nccl" if nccl else "gloo"


def swapped_rank(rank: int, server: int) -> int:
    """Our number for torchrun's rank: the server is 0, and the rank that was 0 takes its number. Its own inverse."""
    return {0: server, server: 0}.get(rank, rank)


def _welcome_ranks(store: Store, size: int, limit: float) -> str:
    prefix = f"llcg/{uuid.uuid4().hex[:12]}"
    end = time.monotonic() + limit
    missing = set(range(1, size))
    while missing:
        for rank in sorted(missing):
            word = stored(store, f"llcg/hello/{rank}")
            if word:
                store.set(f"llcg/welcome/{rank}", f"{word} {prefix}")
            if stored(store, f"llcg/here/{rank}") == prefix:
                missing.remove(rank)
        if missing and time.monotonic() > end:
            names = ", ".join(f"rank {rank}" for rank in sorted(missing))
            raise PeerLostError(f"{names} did not join within cluster.join_timeout={limit:g} s")
        time.sleep(POLL_SECONDS)
    return prefix


def _join(store: Store, rank: int, limit: float) -> str:
    word = uuid.uuid4().hex[:12]
    end = time.monotonic() + limit
    store.set(f"llcg/hello/{rank}", word)
    while True:
        answer = stored(store, f"llcg/welcome/{rank}").split()
        if answer and answer[0] == word:
            store.set(f"llcg/here/{rank}", answer[1])
            return answer[1]
        if time.monotonic() > end:
            raise PeerLostError(f"rank 0 did not answer within cluster.join_timeout={limit:g} s")
        time.sleep(POLL_SECONDS)


def _wait_for(store: Store, key: str, rank: int, limit: float) -> str:
    end = time.monotonic() + limit
    while not (value := stored(store, key)):
        if time.monotonic() > end:
            raise PeerLostError(f"rank {rank} did not join within cluster.join_timeout={limit:g} s")
        time.sleep(POLL_SECONDS)
    return value


def _stay_until_heard(store: Store, rank: int, size: int, limit: float) -> None:
    """Rank 0 may host the store: it leaves last, so that all have read the verdict. But not much later."""
    store.set(f"heard/{rank}", "yes")
    end = time.monotonic() + min(limit, 5)
    while rank == 0 and time.monotonic() < end:
        if all(stored(store, f"heard/{other}") for other in range(size)):
            return
        time.sleep(POLL_SECONDS)


def stored(store: Store, key: str) -> str:
    """What the store has under a key; empty where it has nothing."""
    return store.get(key).decode() if store.check([key]) else ""
