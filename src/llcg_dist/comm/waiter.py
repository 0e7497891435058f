"""Waiting for torch.distributed work in other threads, so that the main thread runs its signal handlers."""

import queue
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from llcg_dist.data import progress
from llcg_dist.errors import PeerLostError

FOREVER = timedelta(days=365)
"""A rank may wait as long as a round takes: the heartbeat limits silence, and standing still. Sends and receives would
take the time that their group had to connect."""


@dataclass(frozen=True)
class Patience:
    """How long is waited for those who are late."""

    until: float
    """By time.monotonic."""
    least: int
    """Before so many have ended, nobody is late."""


class Waiters:
    """A thread for every link waits for Gloo's work on it: a blocking wait in the main thread would hold up its signal
    handlers, and a link on which nothing comes any more must not hold up the others.

    Polling would take processor time from the ranks that compute, and does not work for sends and receives.
    """

    def __init__(self) -> None:
        self._given: dict[int, queue.SimpleQueue[tuple[int, Sequence[Any]] | None]] = {}
        self._done: queue.SimpleQueue[tuple[int, int, Exception | None]] = queue.SimpleQueue()
        self._given_up: dict[int, Exception] = {}
        self._call = 0
        self._left: dict[int, int] = {}
        """Links that are waited for, and the call in which each got its works."""
        self.late: dict[int, int] = {}
        """Links that a wait has ended without, and the call in which each got its works."""
        self._ended_late: dict[int, Exception | None] = {}
        self.moments: dict[int, float] = {}
        """When each link's last works had ended, by time.monotonic."""

    def give(self, works: Mapping[int, Sequence[Any]]) -> None:
        """Hands works to the threads of their links; the next `wait` waits for them."""
        self._call += 1
        for link, its_works in works.items():
            self._left[link] = self._call
            self._thread(link).put((self._call, its_works))

    def wait(
        self, works: Mapping[int, Sequence[Any]], for_all: bool = False, patience: Patience | None = None
    ) -> dict[int, Exception]:
        """Waits for the works of every link; returns the errors of the links that failed. Without `for_all` the first
        failure ends it. Those that `patience` does not reach to are then `late`."""
        self.give(works)
        asked, failures = len(self._left), dict[int, Exception]()
        try:
            with progress.waiting():
                while self._left and (for_all or not failures):
                    failures |= {link: error for link, error in list(self._given_up.items()) if link in self._left}
                    self._left = {link: call for link, call in self._left.items() if link not in failures}
                    if self._left and (for_all or not failures):
                        enough = patience and asked - len(self._left) - len(failures) >= patience.least
                        failures |= self._next(patience.until if patience and enough else None)
        except queue.Empty:
            self.late |= self._left
        finally:
            self._left = {}
        return failures

    def _next(self, until: float | None = None) -> dict[int, Exception]:
        """Takes note of works that have ended; returns their error where they are waited for. Raises queue.Empty."""
        timeout = None if until is None else max(0.0, until - time.monotonic())
        call, link, error = self._done.get(timeout=timeout)
        if self._left.get(link) == call:
            del self._left[link]
            return {link: error} if error else {}
        if self.late.get(link) == call:
            del self.late[link]
            self._ended_late[link] = error
        return {}

    def ended_late(self, wait: bool = False) -> dict[int, Exception | None]:
        """Links that were late and have ended since, each once and with its error; waits for the first where asked."""
        with progress.waiting():
            while True:
                with suppress(queue.Empty):
                    while True:
                        self._next(until=0)
                ended = self._ended_late | {link: self._given_up[link] for link in self.late if link in self._given_up}
                if ended or not (wait and self.late):
                    break
                self._next()
        self.late = {link: call for link, call in self.late.items() if link not in ended}
        self._ended_late = {}
        return ended

    def give_up(self, link: int, why: str) -> None:
        """Called from any thread: nothing more is expected of this link."""
        self._given_up[link] = PeerLostError(why)
        self._done.put((0, link, None))  # whoever waits looks again

    def forget(self, link: int) -> None:
        """The link is gone, and its thread ends when it can; another may take its place."""
        for of_link in (self._given_up, self.late, self._ended_late):
            of_link.pop(link, None)
        if link in self._given:
            self._given.pop(link).put(None)

    def _thread(self, link: int) -> "queue.SimpleQueue[tuple[int, Sequence[Any]] | None]":
        if link not in self._given:
            given = self._given[link] = queue.SimpleQueue()
            threading.Thread(target=self._run, args=(link, given), daemon=True).start()
        return self._given[link]

    def _run(self, link: int, given: "queue.SimpleQueue[tuple[int, Sequence[Any]] | None]") -> None:
        while self._finish(link, given.get()):
            pass

    def _finish(self, link: int, task: tuple[int, Sequence[Any]] | None) -> bool:
        """A function of its own, so that the thread keeps no work alive: its group could not be left in order."""
        if task is None:
            return False
        call, works = task
        error = _first_error(works)
        self.moments[link] = time.monotonic()
        self._done.put((call, link, error))
        return True


def by_link(works: Sequence[tuple[int, Any]]) -> dict[int, list[Any]]:
    """Of (link, work): the works of every link, in their order."""
    of_link: dict[int, list[Any]] = {}
    for link, work in works:
        of_link.setdefault(link, []).append(work)
    return of_link


def _first_error(works: Sequence[Any]) -> Exception | None:
    for work in works:
        try:
            work.wait(FOREVER)
        except Exception as error:  # Gloo's, or that of a seal: whoever waits must hear of it
            return error
    return None
