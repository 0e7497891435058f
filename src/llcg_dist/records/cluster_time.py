"""How long a run would take with a core for each rank and one for the process that evaluates. Imports no torch."""

from collections.abc import Mapping, Sequence
from typing import Any


def link_seconds(sent: Mapping[str, Any], machines: int, link_mbit: float | None) -> float:
    """Seconds of a round's bytes, by its row, where every rank has one link of so many Mbit/s: those between server and
    machines cross the server's, one after the other; features cross the machines' own. 0 without a link."""
    if not link_mbit or not machines:
        return 0.0
    at_server = sum(sent[name] for name in ("bytes_up", "bytes_down", "gradient_bytes", "control_bytes"))
    return 8 * (at_server + sent["feature_bytes"] / machines) / (link_mbit * 1e6)


def round_seconds(row: Mapping[str, Any], alone: bool, link_mbit: float | None = None) -> float:
    """Seconds of a round, by its row, with evaluation in a process of its own that no round waits for: the longest of
    the machines' local work and of the server's steps beside it, then the rest of the correction, and the bytes.
    `alone`: rank 0 does all, one after the other, and sends nothing."""
    local = [seconds for seconds in row["cpu_local_by_part"] if seconds is not None]
    if alone:
        return sum(local) + row["cpu_correct"]
    together = max([*local, row.get("cpu_correct_beside", 0.0)])
    return together + row["cpu_correct"] + link_seconds(row, len(local), link_mbit)


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
