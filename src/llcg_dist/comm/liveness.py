"""Who is silent? A limit on a rank's silence, never on the length of a round.

Every rank writes a growing number to a shared store, from a thread that runs while the main thread computes or waits.
The server reads everyone's, a machine reads the server's: two look-ups per machine and beat, however many there are.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping

from llcg_dist.comm.rendezvous import Store

log = logging.getLogger(__name__)


class Heartbeat:
    """Calls `on_silence(message)` once, from its thread, when a watched rank ({rank: name}) or the store itself says
    nothing for `limit` seconds."""

    def __init__(
        self,
        store: Store,
        rank: int,
        watched: Mapping[int, str],
        limit: float,
        on_silence: Callable[[str], None],
    ) -> None:
        self._store, self._rank, self._limit, self._on_silence = store, rank, limit, on_silence
        self._names = watched
        now = time.monotonic()
        self._heard = {other: (b"", now) for other in watched}
        self._store_answered = now
        self._done = threading.Event()
        self._interval = beat_interval(limit)
        # The store call itself can hang where a network is cut, hence one thread to beat and one to judge.
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._beat, self._judge)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._done.set()

    def _beat(self) -> None:
        count = 0
        while not self._done.wait(self._interval if count else 0):
            count += 1
            try:
                self._store.set(_key(self._rank), str(count))
                for other, (last, _) in list(self._heard.items()):
                    if self._store.check([_key(other)]):
                        value = self._store.get(_key(other))
                        if value != last:
                            self._heard[other] = (value, time.monotonic())
                self._store_answered = time.monotonic()
            except RuntimeError as error:  # torch raises its DistNetworkError and kin from RuntimeError
                log.warning("heartbeat: %s", str(error).splitlines()[0])

    def _judge(self) -> None:
        while not self._done.wait(self._interval / 2):
            message = self.verdict(time.monotonic())
            if message and not self._done.is_set():
                self._done.set()
                self._on_silence(message)

    def verdict(self, now: float) -> str | None:
        """Whom nobody has heard for too long, and for how long."""
        if now - self._store_answered > self._limit:
            return f"no answer from the job's store on rank 0's host for {now - self._store_answered:.0f} s"
        silent = {rank: now - when for rank, (_, when) in self._heard.items() if now - when > self._limit}
        if not silent:
            return None
        names = ", ".join(f"{self._names[rank]} for {seconds:.0f} s" for rank, seconds in sorted(silent.items()))
        return f"nothing heard from {names} (cluster.timeout={self._limit:g})"


def beat_interval(limit: float) -> float:
    """Seconds between a rank's beats where silence is limited to `limit`."""
    return min(1.0, limit / 5)


def _key(rank: int) -> str:
    return f"beat/{rank}"
