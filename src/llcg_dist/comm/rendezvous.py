"""All ranks of one start of a job find each other, and nobody else's traces.

torchrun's store outlives a restart, and with it the addresses of processes that are gone. So the ranks first agree on a
prefix that is new: each rank writes a fresh word, rank 0 answers it with the prefix, and an answer counts only for the
word it repeats. On the way rank 0 learns who is missing.
"""

import time
import uuid
from typing import Protocol

from llcg_dist.errors import PeerLostError

POLL_INTERVAL = 0.02


class Store(Protocol):
    def set(self, key: str, value: str) -> None: ...

    def get(self, key: str) -> bytes: ...

    def check(self, keys: list[str]) -> bool: ...


def fresh_prefix(store: Store, rank: int, size: int, limit: float) -> str:
    """The same new prefix at every rank; raises PeerLostError with the missing ranks after `limit` seconds."""
    return _greet(store, size, limit) if rank == 0 else _be_greeted(store, rank, limit)


def _greet(store: Store, size: int, limit: float) -> str:
    prefix = f"llcg/{uuid.uuid4().hex[:12]}"
    end = time.monotonic() + limit
    missing = set(range(1, size))
    while missing:
        for rank in sorted(missing):
            word = _read(store, f"llcg/hello/{rank}")
            if word:
                store.set(f"llcg/welcome/{rank}", f"{word} {prefix}")
            if _read(store, f"llcg/here/{rank}") == prefix:
                missing.remove(rank)
        if missing and time.monotonic() > end:
            names = ", ".join(f"rank {rank}" for rank in sorted(missing))
            raise PeerLostError(f"{names} did not join within cluster.join_timeout={limit:g} s")
        time.sleep(POLL_INTERVAL)
    return prefix


def _be_greeted(store: Store, rank: int, limit: float) -> str:
    word = uuid.uuid4().hex[:12]
    end = time.monotonic() + limit
    store.set(f"llcg/hello/{rank}", word)
    while True:
        answer = _read(store, f"llcg/welcome/{rank}").split()
        if answer and answer[0] == word:
            store.set(f"llcg/here/{rank}", answer[1])
            return answer[1]
        if time.monotonic() > end:
            raise PeerLostError(f"rank 0 (server) did not answer within cluster.join_timeout={limit:g} s")
        time.sleep(POLL_INTERVAL)


def _read(store: Store, key: str) -> str:
    return store.get(key).decode() if store.check([key]) else ""
