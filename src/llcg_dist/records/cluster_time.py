"""How long a run would take with a core for each rank and one for the process that evaluates. Imports no torch."""

from collections.abc import Mapping, Sequence
from typing import Any


class EvaluatorQueue:
    """The time that rounds wait for evaluations beside them, in cluster time.

    Evaluations run one after the other. A round goes in when it ends, and waits while `length` others are there: the
    machines wait with it.
    """

    def __init__(self, length: int, rows: Sequence[Mapping[str, Any]] = ()) -> None:
        """`rows`: of the run so far."""
        self._length, self._now, self._ends = length, 0.0, list[float]()
        for row in rows:
            self._now += row.get("cluster_seconds") or 0.0
            self._enter(row.get("cpu_evaluate") or 0.0)

    def round(self, seconds: float, evaluating: float, is_last: bool) -> float:
        """Seconds of a round with what it waits for; alone it takes `seconds`, and its evaluation `evaluating` (0: it
        has none). The last one is not over before all evaluations are."""
        ended = self._now + seconds
        self._now = ended
        if evaluating and len(self._ends) >= self._length:
            self._now = max(self._now, self._ends[-self._length])
        self._enter(evaluating)
        if is_last:
            self._now = max([self._now, *self._ends[-1:]])
        return seconds + (self._now - ended)

    def _enter(self, evaluating: float) -> None:
        if evaluating:
            self._ends = [*self._ends[-self._length :], max([self._now, *self._ends[-1:]]) + evaluating]
