"""A job that trains and goes on without lost machines, as another host sees it that may take their places."""

import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from llcg_dist.comm.job_board import RUNNING, JobBoard
from llcg_dist.comm.job_store import under
from llcg_dist.comm.rendezvous import stored, swapped_rank


@dataclass(frozen=True)
class Place:
    """What a host takes over: these ranks of a start of the job."""

    ticket: dict[str, Any]
    """A Ticket (comm/resources.py)."""
    size: int
    """How many ranks the job has."""
    ranks: list[int]

    @property
    def torchrun_ranks(self) -> list[int]:
        """The numbers that torchrun's agents gave them."""
        return [swapped_rank(rank, int(self.ticket["decision"]["server"])) for rank in self.ranks]


class RunningJob:
    """The start of a job whose rounds have begun."""

    def __init__(self, store: Any, ticket: dict[str, Any], size: int) -> None:
        self._ticket, self._size = ticket, size
        self._start_store = under(store, str(ticket["prefix"]))
        self._board = JobBoard(store, self._start_store, size)
        placed = self._board.published()
        self._part_of_rank = {rank: part for part, rank in enumerate(placed["rank_of_part"])}

    @property
    def is_over(self) -> bool:
        """Its run has ended, or has failed."""
        return self._board.has_ended()

    def beat(self) -> bytes:
        """The server's last sign of life."""
        return self._start_store.get("beat/0") if self._start_store.check(["beat/0"]) else b""

    def absent(self) -> dict[int, int]:
        """{rank: part} of the machines that the server goes on without."""
        return {rank: part for rank, part in sorted(self._part_of_rank.items()) if self._board.is_absent(rank)}

    def holder(self, rank: int) -> int | None:
        """The number of the host that has claimed a rank."""
        claim = self._claim(rank)
        return int(claim.split()[0]) if claim else None

    def claim(self, ranks: list[int], most: int, host: int, is_gone: Callable[[int], bool]) -> Place | None:
        """The first of these ranks, `most` at most, become this host's, but for those of hosts that are not gone. Of
        several hosts that claim a rank at once, one gets it."""
        taken = list[int]()
        for rank in ranks:
            claim, mine = self._claim(rank), f"{host} {uuid.uuid4().hex}"  # no two claims are the same text
            if len(taken) == most or (claim and not is_gone(int(claim.split()[0]))):
                continue
            if self._start_store.compare_set(_claim_key(rank), claim, mine) == mine.encode():
                taken.append(rank)
        return Place(self._ticket, self._size, taken) if taken else None

    def _claim(self, rank: int) -> str:
        return stored(self._start_store, _claim_key(rank))


def running_job(store: Any) -> RunningJob | None:
    """What the job's store tells of a start whose rounds have begun."""
    if not store.check([RUNNING]):
        return None
    said = json.loads(store.get(RUNNING))
    return RunningJob(store, said["ticket"], said["size"])


def _claim_key(rank: int) -> str:
    """Key of the start's store: which host has claimed the rank."""
    return f"claimed/{rank}"
