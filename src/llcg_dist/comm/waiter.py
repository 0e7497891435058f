"""Waiting for torch.distributed work in other threads, so that the main thread runs its signal handlers."""

import queue
import threading
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from llcg_dist.data import progress
from llcg_dist.errors import PeerLostError

FOREVER = timedelta(days=365)
"""A rank may wait as long as a round takes: the heartbeat limits silence, and standing still. Sends and receives would
take the time that their group had to connect."""


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

    def wait(self, works: Mapping[int, Sequence[Any]], for_all: bool = False) -> dict[int, Exception]:
        """Waits for the works of every link; returns the errors of the links that failed. Without `for_all` the first
        failure ends it."""
        self._call += 1
        for link, its_works in works.items():
            self._thread(link).put((self._call, its_works))
        left, failures = set(works), dict[int, Exception]()
        with progress.waiting():
            while left and (for_all or not failures):
                failures |= {link: error for link, error in list(self._given_up.items()) if link in left}
                left -= failures.keys()
                if left and (for_all or not failures):
                    call, link, error = self._done.get()
                    if call == self._call and link in left:
                        left.remove(link)
                        failures |= {link: error} if error else {}
        return failures

    def give_up(self, link: int, why: str) -> None:
        """Called from any thread: nothing more is expected of this link."""
        self._given_up[link] = PeerLostError(why)
        self._done.put((0, link, None))  # whoever waits looks again

    def forget(self, link: int) -> None:
        """The link is gone, and its thread ends when it can; another may take its place."""
        self._given_up.pop(link, None)
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
        self._done.put((call, link, _first_error(works)))
        return True


def _first_error(works: Sequence[Any]) -> Exception | None:
    for work in works:
        try:
            work.wait(FOREVER)
        except Exception as error:  # Gloo's, or that of a seal: whoever waits must hear of it
            return error
    return None
