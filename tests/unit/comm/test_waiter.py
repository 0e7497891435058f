"""Waiting for others: errors arrive, and signals are answered meanwhile."""

import os
import signal
import threading
import time
from datetime import timedelta

import pytest

from llcg_dist.comm.waiter import Patience, Waiters


class Work:
    def __init__(self, error: str = "", until: threading.Event | None = None) -> None:
        self._error, self._until, self.waited = error, until, False

    def wait(self, timeout: timedelta) -> None:
        assert timeout > timedelta(days=30)  # a round may take long
        if self._until:
            self._until.wait(20)
        if self._error:
            raise RuntimeError(self._error)
        self.waited = True


def test_it_waits_for_all_of_them_and_again() -> None:
    waiters = Waiters()
    for _ in range(3):
        works = {1: [Work(), Work()], 2: [Work()]}
        assert waiters.wait(works) == {}
        assert all(work.waited for its in works.values() for work in its)


def test_a_failure_is_told_with_its_link_and_ends_the_wait() -> None:
    waiters, never = Waiters(), threading.Event()
    failures = waiters.wait({1: [Work(until=never)], 2: [Work(), Work("connection closed"), Work("another")]})
    assert {link: str(error) for link, error in failures.items()} == {2: "connection closed"}
    never.set()
    assert waiters.wait({2: [Work()]}) == {}


def test_where_all_are_waited_for_every_failure_is_told() -> None:
    done, waiters = Work(), Waiters()
    failures = waiters.wait({1: [Work("cut")], 2: [done], 3: [Work("closed")]}, for_all=True)
    assert {link: str(error) for link, error in failures.items()} == {1: "cut", 3: "closed"}
    assert done.waited


def test_a_link_that_is_given_up_holds_up_nobody_and_another_takes_its_place() -> None:
    waiters, never = Waiters(), threading.Event()
    threading.Timer(0.2, waiters.give_up, [1, "silent"]).start()
    failures = waiters.wait({1: [Work(until=never)], 2: [Work()]}, for_all=True)
    assert {link: str(error) for link, error in failures.items()} == {1: "silent"}
    assert waiters.wait({1: [Work()]}, for_all=True).keys() == {1}, "what was given up stays so"
    waiters.forget(1)
    assert waiters.wait({1: [Work()], 2: [Work()]}, for_all=True) == {}
    never.set()  # what the old thread still finds is of a wait that is over
    assert waiters.wait({1: [Work()]}, for_all=True) == {}


def test_patience_ends_a_wait_without_the_late_ones_which_are_found_later() -> None:
    waiters, slow = Waiters(), threading.Event()
    works = {1: [Work(until=slow)], 2: [Work()], 3: [Work("cut", until=slow)]}
    assert waiters.wait(works, for_all=True, patience=Patience(time.monotonic() + 0.2, least=1)) == {}
    assert waiters.late.keys() == {1, 3}
    assert waiters.wait({2: [Work()]}, for_all=True) == {}, "those that are late are not waited for"
    assert waiters.ended_late() == {}
    slow.set()
    found = waiters.ended_late(wait=True)
    while len(found) < 2:
        found |= waiters.ended_late(wait=True)
    assert found[1] is None
    assert str(found[3]) == "cut"
    assert waiters.ended_late(wait=True) == {}, "each is told once, and nobody is waited for"
    assert waiters.wait({1: [Work()], 2: [Work()], 3: [Work()]}, for_all=True) == {}


def test_nobody_is_late_before_enough_are_there() -> None:
    waiters, slow = Waiters(), threading.Event()
    threading.Timer(0.3, slow.set).start()
    assert waiters.wait({1: [Work(until=slow)], 2: [Work(until=slow)]}, True, Patience(0.0, least=2)) == {}
    assert waiters.late == {}
    assert waiters.moments.keys() == {1, 2}


def test_what_came_before_it_was_waited_for_is_not_late() -> None:
    waiters = Waiters()
    waiters.give({1: [Work()], 2: [Work()]})
    time.sleep(0.3)
    assert waiters.wait({}, True, Patience(0.0, least=0)) == {}
    assert waiters.late == {}


def test_one_that_is_late_and_given_up_is_told_so() -> None:
    waiters, never = Waiters(), threading.Event()
    waiters.wait({1: [Work(until=never)], 2: [Work()]}, True, Patience(0.0, least=1))
    threading.Timer(0.1, waiters.give_up, [1, "silent"]).start()
    assert {link: str(error) for link, error in waiters.ended_late(wait=True).items()} == {1: "silent"}
    waiters.forget(1)
    never.set()
    assert waiters.ended_late() == {}


def test_a_signal_is_answered_while_the_work_is_not_done() -> None:
    class HeardError(Exception): ...

    def hear(*_: object) -> None:
        raise HeardError

    before, never = signal.signal(signal.SIGUSR1, hear), threading.Event()
    try:
        threading.Timer(0.2, os.kill, [os.getpid(), signal.SIGUSR1]).start()
        started = time.monotonic()
        with pytest.raises(HeardError):
            Waiters().wait({1: [Work(until=never)]})
        assert time.monotonic() - started < 5
    finally:
        signal.signal(signal.SIGUSR1, before)
        never.set()
