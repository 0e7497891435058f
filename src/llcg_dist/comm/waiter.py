"""How a rank waits for others and still answers signals."""

import queue
import threading
from collections.abc import Sequence
from typing import Any


class Waiter:
    """A thread that waits for Gloo's work in the place of the main one, which would answer no signal. To ask again and
    again whether it is done would take the cores of those who work, and sends and receives would never say so."""

    def __init__(self) -> None:
        self._given: queue.SimpleQueue[Sequence[Any]] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[tuple[int, RuntimeError] | None] = queue.SimpleQueue()
        threading.Thread(target=self._run, daemon=True).start()

    def wait(self, works: Sequence[Any]) -> tuple[int, RuntimeError] | None:
        """Waits for all of them; returns the place and the error of the first that failed."""
        self._given.put(works)
        return self._done.get()

    def _run(self) -> None:
        while True:
            self._done.put(_first_failure(self._given.get()))


def _first_failure(works: Sequence[Any]) -> tuple[int, RuntimeError] | None:
    """A function of its own, so that the thread keeps no work alive: its group could not be left in order."""
    for place, work in enumerate(works):
        try:
            work.wait()
        except RuntimeError as error:
            return place, error
    return None
