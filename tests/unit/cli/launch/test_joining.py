"""A host that shall start processes of a job which may run already: whether it meets the others, or takes places."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch.distributed as dist

from llcg_dist.cli.launch import attendance, joining
from llcg_dist.cli.launch.attendance import Attendance
from llcg_dist.cli.launch.joining import Joining
from llcg_dist.comm.job_board import JobBoard
from llcg_dist.comm.job_store import under
from llcg_dist.errors import UserError

TICKET = {"prefix": "start", "decision": {"server": 0}, "incarnation": 0}


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in ((joining, "_SETTLE"), (joining, "_NOTICE"), (attendance, "_SILENCE")):
        monkeypatch.setattr(module, f"{name}_SECONDS", 0.5)
    monkeypatch.setattr(joining, "_POLL_SECONDS", 0.02)


class Job:
    """Ranks 1 and 2 train parts 0 and 1, and the server is alive."""

    def __init__(self) -> None:
        self.store: Any = dist.HashStore()
        self.start_store = under(self.store, "start")
        self.board = JobBoard(self.store, self.start_store, 3)
        self.ends = threading.Event()

    def begin(self) -> None:
        self.board.publish({"rank_of_part": [1, 2]}, TICKET)

    def beat(self) -> None:
        count = 0
        while not self.ends.wait(0.02):
            count += 1
            self.start_store.set("beat/0", str(count))

    def joining(self, here: int = 1, parts: tuple[int, ...] = (0, 1)) -> Joining:
        attendance = Attendance(self.store)
        attendance.come()
        return Joining(self.store, attendance, here, frozenset(parts), 0.2)


@pytest.fixture
def job() -> Iterator[Job]:
    job = Job()
    thread = threading.Thread(target=job.beat, daemon=True)
    thread.start()
    yield job
    job.ends.set()
    thread.join(10)


def nobody_meets() -> bool:
    return False


def test_hosts_meet_before_the_rounds(job: Job) -> None:
    assert job.joining().place(nobody_meets) is None


def test_they_meet_where_the_run_is_over_or_others_meet_or_the_server_is_gone(job: Job) -> None:
    job.begin()
    job.board.drop(1, 0)
    assert job.joining().place(lambda: True) is None
    job.ends.set()
    assert job.joining().place(nobody_meets) is None
    job.board.finish()
    assert job.joining().place(nobody_meets) is None


@pytest.mark.parametrize(
    ("lost", "parts", "message"),
    [
        ((), (0, 1), "the job runs, and none of its machines is gone"),
        ((1,), (1,), "partition.root: part 0 has no machine, and this host has no copy of it"),
    ],
)
def test_a_host_that_is_not_needed_is_told_so(
    job: Job, lost: tuple[int, ...], parts: tuple[int, ...], message: str
) -> None:
    job.begin()
    for rank in lost:
        job.board.drop(rank, 0)
    with pytest.raises(UserError, match=message):
        job.joining(parts=parts).place(nobody_meets)


def test_a_host_takes_the_places_of_parts_that_it_has(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    job.begin()
    job.board.drop(1, 0)
    job.board.drop(2, 0)
    place = job.joining(here=2, parts=(1,)).place(nobody_meets)
    assert place is not None
    assert (place.ranks, place.size) == ([2], 3)
    said = "the job goes on without a machine of part 1: this host takes its place; --here=2 is more than it needs\n"
    assert capsys.readouterr().out == said


def test_a_host_waits_until_the_server_has_lost_all_that_it_can_take(job: Job) -> None:
    job.begin()
    job.board.drop(1, 0)
    threading.Timer(0.2, lambda: job.board.drop(2, 0)).start()
    place = job.joining(here=2).place(nobody_meets)
    assert place is not None
    assert place.ranks == [1, 2]


def test_of_two_hosts_one_gets_a_place_until_it_is_gone(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attendance, "_BEAT_SECONDS", 0.05)
    job.begin()
    job.board.drop(1, 0)
    first = job.joining()
    assert first.place(nobody_meets) is not None
    with pytest.raises(UserError, match="another host takes its place already"):
        job.joining().place(nobody_meets)
    first.attendance._left.set()  # it says nothing any more
    assert job.joining().place(nobody_meets) is not None
