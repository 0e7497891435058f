"""Which hosts of a job are there, besides the head: each has a number, and says every second that it is alive."""

import contextlib
import threading
import time
from typing import Any

_CAME, _ALIVE, _LEFT = "llcg/came", "llcg/alive", "llcg/left"
"""Keys of the job's store: how many came; by number, a count that grows, and whether it has left."""
_BEAT_SECONDS = 1.0
_SILENCE_SECONDS = 5.0
"""How long a host may be silent before it counts as gone: a launcher has nothing to do but to wait."""
_LEAVE_SECONDS = 2.0
"""How long a host tries to tell the others that it leaves."""
_POLL_SECONDS = 0.1
_MOST_HOSTS = 10_000
"""Counters carry no seal: whoever reaches the store may raise them."""


class Attendance:
    """One launcher's view of it."""

    def __init__(self, store: Any) -> None:
        self._store, self.number = store, 0
        self._left = threading.Event()
        self._seen: dict[int, tuple[int, float]] = {}

    def come(self) -> None:
        self.number = self._store.add(_CAME, 1)
        threading.Thread(target=self._beat, daemon=True).start()

    def _beat(self) -> None:
        while not self._left.wait(_BEAT_SECONDS):
            with contextlib.suppress(RuntimeError):  # torch's DistNetworkError: the head is out of reach
                self._store.add(f"{_ALIVE}/{self.number}", 1)

    def leave(self) -> None:
        def announce() -> None:
            with contextlib.suppress(RuntimeError):
                self._store.add(f"{_LEFT}/{self.number}", 1)

        self._left.set()
        # In a thread, because over a link that is cut this would block for minutes.
        thread = threading.Thread(target=announce, daemon=True)
        thread.start()
        thread.join(_LEAVE_SECONDS)

    def is_gone(self, number: int) -> bool:
        """Whether a host has left, or is silent since this was first asked; to be asked again and again."""
        if self._store.add(f"{_LEFT}/{number}", 0):
            return True
        count, now = self._store.add(f"{_ALIVE}/{number}", 0), time.monotonic()
        last, since = self._seen.get(number, (None, now))
        if count != last:
            since = now
        self._seen[number] = count, since
        return now - since > _SILENCE_SECONDS

    def wait_for_others(self, seconds: float) -> None:
        """The head's: until all hosts that are alive have left, or the time is over."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            came = min(self._store.add(_CAME, 0), _MOST_HOSTS)
            if all([self.is_gone(number) for number in range(1, 1 + came)]):  # a list: every one is looked at
                return
            time.sleep(_POLL_SECONDS)
