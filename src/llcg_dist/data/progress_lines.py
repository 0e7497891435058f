"""How far long work is: a line now and then with the share that is done, the rate and the time left."""

import time
from collections.abc import Callable

_SECONDS_BETWEEN_LINES = 10.0


class ProgressLines:
    """Says a line every ten seconds; nothing about work that takes less."""

    def __init__(self, what: str, total: int, unit: str, say: Callable[[str], None]) -> None:
        self._what, self._total, self._unit, self._say = what, total, unit, say
        self._done = 0
        self._begin = self._said = time.monotonic()

    def add(self, count: int) -> None:
        """So many more are done."""
        self._done += count
        now = time.monotonic()
        if now - self._said < _SECONDS_BETWEEN_LINES:
            return
        self._said = now
        rate = self._done / (now - self._begin)
        share = 100 * self._done / max(1, self._total)
        left = max(0, self._total - self._done) / rate if rate else 0
        speed = f"{rate / 1e6:.2f} million" if rate >= 1e5 else f"{rate:,.0f}"
        self._say(f"{self._what}: {share:.0f} %, {speed} {self._unit} a second, {_duration(left)} left")


def _duration(seconds: float) -> str:
    minutes = seconds / 60
    if minutes < 2:
        return f"{seconds:.0f} s"
    return f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.1f} h"
