"""Waiting for torch.distributed work in a second thread, so that the main thread runs its signal handlers."""

import queue
import threading
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from llcg_dist.data import progress

FOREVER = timedelta(days=365)
"""A rank may wait as long as a round takes: the heartbeat limits silence, and standing still. Sends and receives would
take the time that their group had to connect."""


class Waiter:
    """A thread that waits for Gloo's work: a blocking wait in the main thread would hold up its signal handlers.

    Polling would take processor time from the ranks that compute, and does not work for sends and receives.
    """

    def __init__(self) -> None:
        self._given: queue.SimpleQueue[Sequence[Any]] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[tuple[int, Exception] | None] = queue.SimpleQueue()
        threading.Thread(target=self._run, daemon=True).start()

    def wait(self, works: Sequence[Any]) -> tuple[int, Exception] | None:
        """Waits for all of them; returns the place and the error of the first that failed."""
        self._given.put(works)
        with progress.waiting():
            return self._done.get()

    def _run(self) -> None:
        while True:
            self._done.put(_first_failure(self._given.get()))


def _first_failure(works: Sequence[Any]) -> tuple[int, Exception] | None:
    """A function of its own, so that the thread keeps no work alive: its group could not be left in order."""
    for place, work in enumerate(works):
        try:
            work.wait(FOREVER)
        except Exception as error:  # Gloo's, or that of a seal: whoever waits must hear of it
            return place, error
    return None
