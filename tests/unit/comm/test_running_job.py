"""A job that goes on without some machines: who is absent, and who takes which place."""

import threading
from typing import Any

import pytest
import torch.distributed as dist
from hypothesis import given
from hypothesis import strategies as st

from llcg_dist.comm.job_board import JobBoard
from llcg_dist.comm.job_store import sealed, under
from llcg_dist.comm.running_job import RunningJob, running_job
from llcg_dist.errors import PeerLostError

TICKET: dict[str, Any] = {
    "prefix": "llcg/start",
    "decision": {"server": 2, "backend": "gloo", "cipher": None},
    "incarnation": 0,
}
KEY = bytes(range(32))


class Job:
    """What the server of a job writes whose part p is trained by rank p + 1."""

    def __init__(self, machines: int, key: bytes | None = None) -> None:
        self.store: Any = sealed(dist.HashStore(), key)
        self.start_store = under(self.store, TICKET["prefix"])
        self.board = JobBoard(self.store, self.start_store, 1 + machines)

    def begin(self, machines: int) -> RunningJob:
        self.board.publish({"rank_of_part": list(range(1, 1 + machines))}, TICKET)
        found = running_job(self.store)
        assert found is not None
        return found


def is_gone(host: int) -> bool:
    return False


def test_before_the_rounds_there_is_nothing_to_join() -> None:
    assert running_job(Job(2).store) is None


@pytest.mark.parametrize("end", ["finish", "record_failure"])
def test_a_run_that_has_ended_is_over(end: str) -> None:
    job = Job(2)
    running = job.begin(2)
    assert not running.is_over
    getattr(job.board, end)(*(["a reason"] if end == "record_failure" else []))
    assert running.is_over


@pytest.mark.parametrize("key", [None, KEY])
def test_who_is_lost_is_absent_until_it_is_admitted(key: bytes | None) -> None:
    job = Job(3, key)
    running = job.begin(3)
    assert running.absent() == {}
    job.board.drop(2, 0)
    job.board.drop(3, 0)
    assert running.absent() == {2: 1, 3: 2}
    job.board.admit(2, 1)
    assert running.absent() == {3: 2}
    job.board.drop(2, 1)
    assert running.absent() == {2: 1, 3: 2}


def test_the_numbers_are_torchruns() -> None:
    job = Job(3)
    place = job.begin(3).claim([1, 2, 3], 3, 1, is_gone)
    assert place is not None
    assert (place.size, place.ranks, place.torchrun_ranks) == (4, [1, 2, 3], [1, 0, 3])
    assert place.ticket == TICKET


@given(st.lists(st.integers(1, 4), min_size=2, max_size=4), st.sets(st.integers(1, 6), min_size=1), st.booleans())
def test_hosts_that_claim_at_once_get_different_ranks(wanted: list[int], absent: set[int], is_sealed: bool) -> None:
    """And none is left while a host could take it."""
    job = Job(6, KEY if is_sealed else None)
    job.begin(6)
    ranks, places = sorted(absent), list[Any]()

    def claim(host: int, most: int) -> None:
        running = running_job(job.store)
        assert running is not None
        places.append(running.claim(ranks, most, host, is_gone))

    threads = [threading.Thread(target=claim, args=arguments) for arguments in enumerate(wanted, start=1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(places) == len(wanted)
    taken = [rank for place in places if place for rank in place.ranks]
    assert len(taken) == len(set(taken)) == min(sum(wanted), len(ranks))


def test_a_claim_ends_with_its_host() -> None:
    job = Job(2)
    running = job.begin(2)
    assert running.claim([2], 1, 1, is_gone) is not None
    assert running.claim([2], 1, 5, is_gone) is None
    assert running.holder(2) == 1
    assert running.claim([2], 1, 5, lambda host: host == 1) is not None
    assert running.holder(2) == 5


@given(st.integers(2, 6), st.booleans())
def test_no_two_processes_of_a_rank_have_one_number(processes: int, is_sealed: bool) -> None:
    job = Job(1, KEY if is_sealed else None)
    numbers = list[int]()
    boards = [JobBoard(job.store, under(job.store, "llcg/start"), 2) for _ in range(processes)]
    threads = [
        threading.Thread(target=lambda board=board: numbers.append(board.new_incarnation(1))) for board in boards
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(numbers) == list(range(1, 1 + processes))


def test_of_two_processes_the_later_waits_and_the_earlier_makes_room() -> None:
    board = Job(1).board
    board.announce(1, 2)
    board.announce(1, 1)  # it was slower
    admitted = list[bool]()
    later = threading.Thread(target=lambda: admitted.append(board.waits_for_admission(1, 2)), daemon=True)
    later.start()
    while board.announced(1) != 2:
        later.join(0.01)
        assert later.is_alive()
    board.admit(1, 2)
    with pytest.raises(PeerLostError, match="began later"):
        board.waits_for_admission(1, 1)
    later.join(60)
    assert admitted == [True]
