"""What ranks tell each other through the job's store besides where they are: why a job ends, and that all are here."""

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any

from llcg_dist.errors import PeerLostError, first_line

REFUSED = "llcg/refused"
"""Key of the job's store: why no rank should start again."""
_FAILURE = "failure"
"""Key of this start's store: why the first rank that failed did so."""
_POLL_SECONDS = 2e-3
_STORE_SECONDS = 2.0
"""How long a rank that ends tries to tell the others why."""


class JobBoard:
    """One rank's view of it. `store` is the job's, `start_store` that of this start alone."""

    def __init__(self, store: Any, start_store: Any, size: int) -> None:
        self._store, self._start_store, self._size = store, start_store, size
        self._meetings = 0

    def refuse(self, reason: str) -> None:
        """Tells the launchers that this job cannot work, so that none of them starts it again."""
        self._store.set(REFUSED, reason)

    def record_failure(self, message: str) -> None:
        """Tells the other ranks why this one ends; the first to fail is heard."""
        _within(_STORE_SECONDS, lambda: self._start_store.compare_set(_FAILURE, "", message))

    def wait_for_failure(self, seconds: float) -> str | None:
        """What a rank recorded, as soon as it is there."""
        found: list[str] = []

        def look() -> None:
            while not self._start_store.check([_FAILURE]):
                time.sleep(10 * _POLL_SECONDS)
            found.append(self._start_store.get(_FAILURE).decode())

        _within(seconds, look)
        return found[0] if found else None

    def meet(self) -> None:
        """Waits through the store until all ranks are here: no byte moves between them."""
        self._meetings += 1
        seconds, key = _POLL_SECONDS, f"meeting/{self._meetings}"
        try:
            self._start_store.add(key, 1)
            while self._start_store.add(key, 0) < self._size:
                time.sleep(seconds)
                seconds = min(seconds * 1.5, 1.0)  # the audit counts these questions
        except RuntimeError as error:
            raise PeerLostError(f"lost the job's store: {first_line(error)}") from error


def _within(seconds: float, ask_store: Callable[[], object]) -> None:
    """Asks the job's store, but waits no longer than this: across a cut link an answer may take for ever."""

    def ask() -> None:
        with contextlib.suppress(RuntimeError):  # the store's host is gone
            ask_store()

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(seconds)
