"""Early stopping: a run ends where its validation score has stopped rising. Imports no torch."""

from collections.abc import Iterable, Mapping
from typing import Any

from llcg_dist.config.schema import Config


class EarlyStopping:
    """Sees the rows of a run in order, and knows its last round.

    What counts are the evaluations that evaluate.every asks for. After `early_stop.patience` of them in a row without a
    score of more than `early_stop.min_delta` above the best, the run ends. Round r is evaluated while round r+1 trains,
    so a run that round r decides to end ends with round r+1. All of it follows from the rows: a resumed run ends with
    the same round.
    """

    def __init__(self, config: Config, rows: Iterable[Mapping[str, Any]] = ()) -> None:
        self._settings, self._every, self._planned = config.early_stop, config.evaluate.every, config.num_rounds
        self._best, self._best_round, self._waited = float("-inf"), 0, 0
        self.last_round = config.num_rounds
        self.reason: str | None = None
        """Why the run ends before num_rounds, if it does."""
        for row in rows:
            self.see(row)

    def see(self, row: Mapping[str, Any]) -> bool:
        """Whether the run ends because of this row of metrics.jsonl."""
        round_, score, settings = row["round"], row.get("val_score"), self._settings
        if not settings.patience or score is None or round_ % self._every or self.reason:
            return False
        if score > self._best + settings.min_delta:
            self._best, self._best_round, self._waited = score, round_, 0
            return False
        self._waited += 1
        if self._waited < settings.patience or round_ + 1 >= self._planned:
            return False
        self.last_round = round_ + 1
        above = f" by more than {settings.min_delta:g}" if settings.min_delta else ""
        best = f"validation score {self._best:.4f} of round {self._best_round}"
        self.reason = f"{best} not exceeded{above} in {self._waited} evaluations (early_stop.patience)"
        return True
