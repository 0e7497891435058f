"""Waiting for others: errors arrive, and signals are answered meanwhile."""

import os
import signal
import threading
import time
from datetime import timedelta

import pytest

from llcg_dist.comm.waiter import Waiter


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
    waiter = Waiter()
    for _ in range(3):
        works = [Work(), Work()]
        assert waiter.wait(works) is None
        assert all(work.waited for work in works)


def test_the_first_failure_is_told_with_its_place() -> None:
    waiter = Waiter()
    failure = waiter.wait([Work(), Work("connection closed"), Work("another")])
    assert failure is not None
    assert (failure[0], str(failure[1])) == (1, "connection closed")
    assert waiter.wait([Work()]) is None


def test_a_signal_is_answered_while_the_work_is_not_done() -> None:
    class HeardError(Exception): ...

    def hear(*_: object) -> None:
        raise HeardError

    before, never = signal.signal(signal.SIGUSR1, hear), threading.Event()
    try:
        threading.Timer(0.2, os.kill, [os.getpid(), signal.SIGUSR1]).start()
        started = time.monotonic()
        with pytest.raises(HeardError):
            Waiter().wait([Work(until=never)])
        assert time.monotonic() - started < 5
    finally:
        signal.signal(signal.SIGUSR1, before)
        never.set()
