"""Silence and standing still: who is blamed, when, and who is not."""

import threading
import time
from collections.abc import Iterator

import pytest

from llcg_dist.comm.liveness import Heartbeat, Limits
from llcg_dist.data import progress
from llcg_dist.data.progress import Report

NAMES = {1: "rank 1 (part 0)", 2: "rank 2 (part 1)"}
LIMITS = Limits(silence=10, stall=30)


class DictStore:
    """A store in memory."""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}

    def set(self, key: str, value: str) -> None:
        self._values[key] = value.encode()

    def get(self, key: str) -> bytes:
        return self._values[key]

    def check(self, keys: list[str]) -> bool:
        return all(key in self._values for key in keys)


class Watch:
    """The server's heartbeat at chosen moments, without its threads."""

    def __init__(self, rank: int = 0, limits: Limits = LIMITS) -> None:
        self.heartbeat = Heartbeat(DictStore(), rank, NAMES if rank == 0 else {0: "rank 0 (server)"}, limits, print)
        self.beats = 0
        self.start = time.monotonic()

    def hears(self, seconds: float, **reports: Report) -> None:
        """Beats of all ranks after so many seconds."""
        self.beats += 1
        now = self.start + seconds
        for name, report in reports.items():
            rank, beat = int(name.removeprefix("rank")), f"{self.beats} {report.encode()}".encode()
            self.heartbeat._heard[rank] = self.heartbeat._heard[rank].and_now(beat, now)
        self.heartbeat._store_answered = now

    def says(self, seconds: float) -> str | None:
        now = self.start + seconds
        return self.heartbeat.silent(now) or self.heartbeat.stalled(now)


WORKS, WAITS = Report(5, False, "round 2, unit 7"), Report(5, True, "round 2, unit 7")


def test_a_rank_that_beats_and_stays_where_it_is() -> None:
    watch = Watch()
    for second in range(0, 60, 5):
        watch.hears(second, rank0=WAITS, rank1=WORKS, rank2=Report(second, True, "round 2"))
        found = watch.says(second)
        assert (found is None) == (second <= 30)
    assert found == "alive, but not moving on: rank 1 (part 0) at round 2, unit 7 for 55 s (cluster.stall_timeout=30)"


def test_steps_count_however_long_a_round_takes() -> None:
    watch = Watch()
    for second in range(0, 1000, 5):
        watch.hears(second, rank0=WAITS, rank1=Report(second // 20, False, "round 1"), rank2=WAITS)
        assert watch.says(second) is None


def test_a_rank_that_waits_is_not_blamed_for_the_one_it_waits_for() -> None:
    """A machine sees the server alone: that may wait for another machine for hours."""
    watch = Watch(rank=1)
    for second in range(0, 1000, 5):
        watch.hears(second, rank1=WAITS, rank0=WAITS)
        assert watch.says(second) is None


def test_where_all_wait_for_each_other_the_server_ends_the_job() -> None:
    watch = Watch()
    for second in range(0, 35, 5):
        watch.hears(second, rank0=WAITS, rank1=WAITS, rank2=WAITS)
        assert watch.says(second) is None
    watch.hears(35, rank0=WAITS, rank1=WAITS, rank2=WAITS)
    assert watch.says(35) == "all ranks wait for each other, and none has moved on for 30 s (cluster.stall_timeout=30)"


def test_silence_is_told_first_and_without_a_limit_on_standing_still_alone() -> None:
    watch = Watch(limits=Limits(silence=10))
    for second in (*range(0, 60, 5), 500):
        watch.hears(second, rank0=WORKS, rank1=WORKS, rank2=WORKS)
        assert watch.says(second) is None
    watch.hears(515, rank0=WORKS, rank2=WORKS)
    assert watch.says(515) == "nothing heard from rank 1 (part 0) for 15 s (cluster.timeout=10)"


def test_a_beat_that_says_nothing_is_a_sign_of_life_alone() -> None:
    watch = Watch()
    for second in range(0, 40, 5):
        watch.heartbeat._heard[1] = watch.heartbeat._heard[1].and_now(f"{second}".encode(), watch.start + second)
        watch.hears(second, rank0=WAITS, rank2=Report(second, False, "round 1"))
    assert "not moving on: rank 1 (part 0) at the start for 35 s" in str(watch.says(35))


@pytest.fixture
def told() -> Iterator[list[str]]:
    """What the threads of two real heartbeats say of each other."""
    store, messages = DictStore(), list[str]()
    limits = Limits(silence=20, stall=0.5)
    one = Heartbeat(store, 0, {1: "rank 1"}, limits, messages.append)
    other = Heartbeat(store, 1, {0: "rank 0"}, limits, messages.append)
    for heartbeat in (one, other):
        heartbeat.start()
    yield messages
    for heartbeat in (one, other):
        heartbeat.stop()


def test_the_threads_report_the_main_thread(told: list[str]) -> None:
    progress.begin("round 4")
    for _ in range(15):  # 1.5 s
        progress.advance()
        time.sleep(0.1)
    assert told == []
    threading.Event().wait(1.5)
    assert sorted(told) == [message for message in sorted(told) if "at round 4, unit 15 for" in message]
    assert len(told) == 2
