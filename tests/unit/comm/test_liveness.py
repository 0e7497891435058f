"""Silence and standing still: who is blamed, when, and who is not."""

import sys
import threading
import time
from collections.abc import Callable, Iterator

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

    def __init__(self, rank: int = 0, limits: Limits = LIMITS, names: dict[int, str] = NAMES) -> None:
        self.heartbeat = Heartbeat(DictStore(), rank, names if rank == 0 else {0: "rank 0 (server)"}, limits, print)
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


def test_a_server_whose_machines_may_be_lost_watches_itself() -> None:
    watch = Watch(names={0: "rank 0 (server)", **NAMES})
    for second in range(0, 40, 5):
        watch.hears(second, rank0=WORKS, rank1=WAITS, rank2=Report(second, False, "round 2"))
        found = watch.says(second)
        assert (found is None) == (second <= 30)
    assert found == "alive, but not moving on: rank 0 (server) at round 2, unit 7 for 35 s (cluster.stall_timeout=30)"
    assert watch.heartbeat.given_up(watch.start + 35) == {}


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


def test_where_others_go_on_each_rank_is_given_up_for_itself() -> None:
    watch = Watch()
    for second in range(0, 45, 5):
        watch.hears(second, rank0=WAITS, rank1=Report(second, False, "round 2"))
        if second < 20:
            watch.hears(second, rank2=WAITS)
    assert watch.heartbeat.given_up(watch.start + 45) == {2: "nothing heard for 25 s (cluster.timeout=10)"}
    watch.heartbeat.forget(2)
    assert watch.heartbeat.given_up(watch.start + 45) == {}
    assert watch.says(45) is None


def test_a_rank_that_is_silent_does_not_end_a_job_that_goes_on() -> None:
    """Not even at a moment when nobody has looked since its time was over."""
    watch = Watch()
    watch.hears(0, rank0=WAITS, rank1=WORKS, rank2=WORKS)
    watch.hears(9, rank0=WAITS, rank1=Report(6, False, "round 2"))
    assert watch.says(11) == "nothing heard from rank 2 (part 1) for 11 s (cluster.timeout=10)"
    watch.heartbeat.on_loss = lambda rank, why: None
    assert watch.says(11) is None
    watch.hears(11, rank0=WAITS, rank1=Report(7, False, "round 2"))
    assert watch.heartbeat.given_up(watch.start + 11).keys() == {2}


def test_one_that_beats_and_stays_where_it_is_is_given_up_too() -> None:
    watch = Watch()
    for second in range(0, 45, 5):
        watch.hears(second, rank0=WAITS, rank1=WORKS, rank2=Report(second, True, "round 2"))
    place = "alive, but not moving on at round 2, unit 7 for 40 s (cluster.stall_timeout=30)"
    assert watch.heartbeat.given_up(watch.start + 40) == {1: place}


def test_where_the_store_does_not_answer_nobody_is_given_up() -> None:
    watch = Watch()
    watch.hears(0, rank0=WAITS, rank1=WORKS, rank2=WORKS)
    assert watch.heartbeat.given_up(watch.start + 20) == {}
    assert watch.says(20) == "no answer from the job's store on rank 0's host for 20 s"


def test_another_process_of_a_rank_has_beats_of_its_own() -> None:
    watch = Watch()
    watch.hears(0, rank0=WAITS, rank1=WORKS, rank2=WORKS)
    watch.heartbeat.forget(1)
    watch.heartbeat.watch(1, NAMES[1], incarnation=3)
    assert [watch.heartbeat._key(rank) for rank in (1, 2)] == ["beat/1/3", "beat/2"]
    watch.hears(8, rank2=Report(9, False, "round 2"))
    assert watch.heartbeat.given_up(watch.start + 8) == {}, "it has as long as any other"
    watch.hears(16, rank2=Report(10, False, "round 2"))
    assert watch.heartbeat.given_up(watch.start + 16).keys() == {1}


def test_who_is_watched_changes_while_all_threads_look() -> None:
    """The one that judges would end, and nobody would be given up any more."""
    store, failures, done = DictStore(), list[BaseException](), threading.Event()
    heartbeat = Heartbeat(store, 0, dict.fromkeys(range(1, 20), "machine"), Limits(silence=60, stall=60), print)

    def again_and_again(step: Callable[[], object]) -> None:
        try:
            while not done.is_set():
                step()
        except BaseException as error:
            failures.append(error)

    def readmit() -> None:
        for rank in range(1, 20):
            heartbeat.forget(rank)
            heartbeat.watch(rank, "machine", 1)

    def judge() -> None:
        now = time.monotonic()
        heartbeat.given_up(now + 90), heartbeat.silent(now + 90), heartbeat.stalled(now + 90)

    threads = [threading.Thread(target=again_and_again, args=(step,)) for step in (readmit, judge, heartbeat.beat)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        done.wait(1.0)
    finally:
        done.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(interval)
    assert failures == []
    assert heartbeat._names.keys() == set(range(1, 20)), "one that was readmitted is watched"


def test_a_machine_hears_that_the_others_have_gone_on() -> None:
    store, told = DictStore(), list[str]()
    for incarnation, wanted in ((0, 1), (2, 2)):
        heartbeat = Heartbeat(store, 1, {0: "rank 0 (server)"}, Limits(silence=60), told.append)
        heartbeat.set_incarnation(1, incarnation)
        heartbeat.loss_key = "wanted/1"
        store.set("wanted/1", str(wanted))
        heartbeat.start()
        end = time.monotonic() + (20 if wanted > incarnation else 1.2)
        while time.monotonic() < end and not told:
            time.sleep(0.05)
        heartbeat.stop()
        assert told == (["the server has gone on without this machine"] if wanted > incarnation else [])
        told.clear()
