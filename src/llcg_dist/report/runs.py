"""Finds and reads the records of finished runs."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llcg_dist.errors import UserError

_NUMBER = int | float
_PERHAPS = int | float | None
SUMMARY: dict[str, Any] = {
    "algorithm": str, "batchnorm_stats": str, "metric": str, "seed": int, "local_steps_total": int,
    "final_val_score": _PERHAPS, "best_val_score": _PERHAPS, "test_score_at_best_val": _PERHAPS,
    "mb_up_per_round": _NUMBER, "mb_down_per_round": _NUMBER, "feature_mb_per_round": _NUMBER,
    "paper_mb_per_round": _NUMBER, "seconds_total": _NUMBER,
}  # fmt: skip
ROW: dict[str, Any] = {
    "round": int, "val_score": _PERHAPS, "train_loss": _PERHAPS,
    "bytes_up": int, "bytes_down": int, "feature_bytes": int, "gradient_bytes": int,
}  # fmt: skip


@dataclass(frozen=True)
class Run:
    path: Path
    summary: dict[str, Any]
    rows: list[dict[str, Any]]

    @property
    def method(self) -> str:
        return str(self.summary["algorithm"])

    def column(self, key: str) -> list[Any]:
        return [row[key] for row in self.rows]

    def sent_megabytes(self) -> list[float]:
        """Running sum of all bytes of parameters, gradients and features, after each round."""
        total, sums = 0, []
        for row in self.rows:
            total += row["bytes_up"] + row["bytes_down"] + row["feature_bytes"] + row["gradient_bytes"]
            sums.append(total / 1e6)
        return sums


def find_runs(paths: Sequence[Path]) -> list[Run]:
    """Every finished run at or below the paths, oldest first."""
    for path in paths:
        if not path.is_dir():
            raise UserError(f"report: {path} is not a folder; name a run directory, or a folder of them")
    found = {summary for path in paths for summary in path.rglob("summary.json")}
    if not found:
        raise UserError(f"report: no finished run (summary.json) in {', '.join(map(str, paths))}")
    return [_read(summary) for summary in sorted(found, key=lambda p: (p.stat().st_mtime, p))]


def _read(summary: Path) -> Run:
    try:
        rows = [json.loads(line) for line in (summary.parent / "metrics.jsonl").read_text().splitlines()]
        run = Run(summary.parent, json.loads(summary.read_text()), rows)
    except (ValueError, OSError, RecursionError) as error:
        raise UserError(f"report: cannot read the records in {summary.parent}: {error}") from None
    for what, found, needed in [("summary.json", run.summary, SUMMARY), *(("metrics.jsonl", row, ROW) for row in rows)]:
        for key, kind in needed.items():
            if not isinstance(found, dict) or key not in found or not isinstance(found[key], kind):
                raise UserError(f"report: {summary.parent / what}: {key} is missing or of the wrong kind")
    return run
