"""What a finished run has recorded, with the cluster time of its rounds: a core for each rank, evaluation apart."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from llcg_dist.records.cluster_time import round_seconds
from llcg_dist.records.columns import sent_bytes

ALONE = ("single", "server_only")
"""Methods of rank 0 alone."""


class TimedRun:
    """Scores in %."""

    def __init__(self, folder: Path) -> None:
        self.rows: list[dict[str, Any]] = [
            json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()
        ]
        summary = json.loads((folder / "summary.json").read_text())
        self.test, self.best = 100 * summary["test_score_at_best_val"], 100 * summary["best_val_score"]
        self.final, self.final_test = 100 * summary["final_val_score"], 100 * summary["final_test_score"]
        self.is_alone = summary["algorithm"] in ALONE

    def clock(self, link_mbit: float | None = None) -> np.ndarray:
        """Cluster seconds until the end of each round, where every rank has a link of so many Mbit/s."""
        return np.cumsum([round_seconds(row, self.is_alone, link_mbit) for row in self.rows])

    def seconds_to(self, target: float, link_mbit: float | None = None) -> float:
        """Infinite where it is never reached."""
        round_ = self.rounds_to(target)
        return float("inf") if round_ is None else float(self.clock(link_mbit)[round_ - 1])

    def rounds_to(self, target: float) -> int | None:
        """The first round with this validation score; None: none has it."""
        reached = (row["round"] for row in self.rows if 100 * (row["val_score"] or 0.0) >= target)
        return next(reached, None)

    @property
    def correction_steps(self) -> float:
        """Of a round, on average."""
        return sum(row.get("S") or 0 for row in self.rows) / len(self.rows)

    @property
    def megabytes(self) -> float:
        """Sent in a round, on average."""
        return sum(map(sent_bytes, self.rows)) / len(self.rows) / 1e6
