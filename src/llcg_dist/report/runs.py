"""Finds and reads the records of finished runs."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llcg_dist.errors import UserError


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
        return Run(summary.parent, json.loads(summary.read_text()), rows)
    except (ValueError, OSError) as error:
        raise UserError(f"report: cannot read the records in {summary.parent}: {error}") from None
