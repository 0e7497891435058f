"""Reads the records of bench.accuracy's runs: scores under either kind of statistics, rounds, bytes, cost."""

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

KINDS = ("average", "recalibrate")
_SUFFIX = {"recalibrate": "", "average": "_average"}
"""Runs recalibrate, and record the scores under averaged statistics beside."""


@dataclass(frozen=True)
class Record:
    folder: Path

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "metrics.jsonl").read_text().splitlines()]

    def best_val(self, kind: str) -> float:
        """In percent."""
        return 100 * max(row["val_score" + _SUFFIX[kind]] for row in self.rows)

    def test(self, kind: str) -> float:
        """In percent, at the best validation score (the first round that has it)."""
        best = max(self.rows, key=lambda row: row["val_score" + _SUFFIX[kind]])
        return 100 * best["test_score" + _SUFFIX[kind]]

    def first_round(self, kind: str, target: float) -> int | None:
        """The first whose validation score (in percent) is at least `target`; None: no round."""
        key = "val_score" + _SUFFIX[kind]
        return next((row["round"] for row in self.rows if 100 * row[key] >= target), None)

    def messages(self) -> list[dict[str, Any]]:
        """What the ledger counted in the rounds."""
        found = json.loads((self.folder / "wire.json").read_text())["messages"]
        return [message for message in found if message["phase"] == "round"]

    def cpu_seconds(self) -> float:
        return float(json.loads((self.folder / "cost.json").read_text())["cpu_seconds"])


class Runs:
    """The finished runs under a folder: part/graph/method/seed."""

    def __init__(self, folder: Path) -> None:
        self._records: dict[tuple[str, str, str], dict[int, Record]] = {}
        for path in sorted(folder.glob("*/*/*/*/cost.json")):
            part, graph, method, seed = path.relative_to(folder).parts[:4]
            self._records.setdefault((part, graph, method), {})[int(seed)] = Record(path.parent)

    def of(self, part: str, graph: str, method: str) -> dict[int, Record]:
        """By seed."""
        return self._records.get((part, graph.replace(" ", "_"), method.replace(" ", "_")), {})

    def tests(self, part: str, graph: str, method: str, kind: str) -> dict[int, float]:
        return {seed: record.test(kind) for seed, record in self.of(part, graph, method).items()}

    def all_of(self, part: str) -> list[Record]:
        return [
            record for (found, _, _), by_seed in self._records.items() if found == part for record in by_seed.values()
        ]
