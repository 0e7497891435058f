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
        self._done: queue.SimpleQueue[RuntimeError | None] = queue.SimpleQueue()
        threading.Thread(target=self._run, daemon=True).start()

    def wait(self, works: Sequence[Any]) -> None:
        self._given.put(works)
        error = self._done.get()
        if error:
            raise error

    def _run(self) -> None:
        while True:
            self._done.put(_error_of(self._given.get()))


def _error_of(works: Sequence[Any]) -> RuntimeError | None:
    """A function of its own, so that the thread keeps no work alive: its group could not be left in order."""
    try:
        for work in works:
            work.wait()
    except RuntimeError as error:
        return error
    return None
