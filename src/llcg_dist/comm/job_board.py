"""What ranks tell each other through the job's store besides where they are: why a job ends, that all are here, and who
has gone and is back."""

import contextlib
import json
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from llcg_dist.comm.rendezvous import stored
from llcg_dist.errors import PeerLostError, first_line

REFUSED = "llcg/refused"
"""Key of the job's store: why no rank should start again."""
RUNNING = "llcg/running"
"""Key of the job's store: the ticket of the start whose rounds have begun, for hosts that join while it runs."""
_FAILURE = "failure"
"""Key of this start's store: why the first rank that failed did so."""
_PLACED, _OVER = "placed", "over"
"""Keys of this start's store: how it began, and that it has ended."""
_POLL_SECONDS = 2e-3
_RETURN_POLL_SECONDS = 0.05
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

    def publish(self, placed: Mapping[str, Any], ticket: Mapping[str, Any]) -> None:
        """The server's: how this start began, for machines that begin again, on their own hosts or on others."""
        self._start_store.set(_PLACED, json.dumps(placed))
        self._store.set(RUNNING, json.dumps({"ticket": ticket, "size": self._size}))

    def published(self) -> dict[str, Any]:
        """What the server has published."""
        return json.loads(self._start_store.get(_PLACED))

    def new_incarnation(self, rank: int) -> int:
        """The number of another process of the rank, which no other gets: several hosts may start one at a time."""
        key = f"process/{rank}"
        while True:
            last = stored(self._start_store, key)
            number = 1 + int(last.split()[0]) if last else 1
            mine = f"{number} {uuid.uuid4().hex}"  # not the text of another that takes the same number
            if self._start_store.compare_set(key, last, mine) == mine.encode():
                return number

    def announce(self, rank: int, incarnation: int) -> None:
        """A machine's: another process of this rank is ready to take its part."""
        self._start_store.set(f"back/{rank}", str(incarnation))

    def announced(self, rank: int) -> int:
        """The newest process of a rank that is ready; 0: none but the first."""
        return self._number(f"back/{rank}")

    def admit(self, rank: int, incarnation: int) -> None:
        """The server's: this process of the rank may join."""
        self._start_store.set(f"admitted/{rank}", str(incarnation))

    def waits_for_admission(self, rank: int, incarnation: int) -> bool:
        """A machine's: until the server has admitted this process of the rank; False: the run is over. While another
        process has the place, this one is there should that be lost."""
        while (admitted := self._number(f"admitted/{rank}")) != incarnation:
            if self._start_store.check([_OVER]):
                return False
            if admitted > incarnation:
                raise PeerLostError("a process that began later has this machine's place")
            if self.announced(rank) < incarnation:  # a slower one before it has announced itself since
                self.announce(rank, incarnation)
            time.sleep(_RETURN_POLL_SECONDS)
        return True

    def is_absent(self, rank: int) -> bool:
        """Whether the server goes on without this rank."""
        return self._number(loss_key(rank)) > self._number(f"admitted/{rank}")

    def has_ended(self) -> bool:
        """The run is over, or a rank that cannot be replaced has failed."""
        return self._start_store.check([_OVER]) or self._start_store.check([_FAILURE])

    def drop(self, rank: int, incarnation: int) -> None:
        """The server's: it has given up this process of the rank, which may be alive."""
        _within(_STORE_SECONDS, lambda: self._start_store.set(loss_key(rank), str(incarnation + 1)))

    def finish(self) -> None:
        """The server's: the run is over."""
        self._start_store.set(_OVER, "yes")

    def _number(self, key: str) -> int:
        return int(stored(self._start_store, key) or 0)

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


def loss_key(rank: int) -> str:
    """Key of this start's store: the first process of the rank that the server has not given up."""
    return f"wanted/{rank}"


def _within(seconds: float, ask_store: Callable[[], object]) -> None:
    """Asks the job's store, but waits no longer than this: across a cut link an answer may take for ever."""

    def ask() -> None:
        with contextlib.suppress(RuntimeError):  # the store's host is gone
            ask_store()

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(seconds)
