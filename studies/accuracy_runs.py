"""Reads the records of studies.accuracy's runs: scores under either kind of statistics, rounds, bytes, cost."""

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

KINDS = ("average", "recalibrate", "best")
_SUFFIX = {"recalibrate": "", "average": "_average"}
"""Runs recalibrate, and record the scores under averaged statistics beside: `best` is that of the two with the better
validation score, round by round, as a run with that setting records it (tests/distributed/test_both_statistics.py)."""


@dataclass(frozen=True)
class Record:
    folder: Path

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "metrics.jsonl").read_text().splitlines()]

    def scores(self, kind: str) -> list[tuple[float, float]]:
        """(validation, test) of every round, in percent."""

        def of(row: dict[str, Any], kind: str) -> tuple[float, float]:
            return 100 * row["val_score" + _SUFFIX[kind]], 100 * row["test_score" + _SUFFIX[kind]]

        kinds = [*_SUFFIX] if kind == "best" else [kind]
        return [max((of(row, kind) for kind in kinds), key=lambda found: found[0]) for row in self.rows]

    def best_val(self, kind: str) -> float:
        return max(val for val, _ in self.scores(kind))

    def test(self, kind: str) -> float:
        """The test score at the best validation score (the first round that has it)."""
        return max(self.scores(kind), key=lambda found: found[0])[1]

    def first_round(self, kind: str, target: float) -> int | None:
        """The first whose validation score is at least `target`; None: no round."""
        return next((round_ for round_, (val, _) in enumerate(self.scores(kind), start=1) if val >= target), None)

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
        """The finished runs of a method on a graph, by seed."""
        return self._records.get((part, graph.replace(" ", "_"), method.replace(" ", "_")), {})

    def tests(self, part: str, graph: str, method: str, kind: str) -> dict[int, float]:
        return {seed: record.test(kind) for seed, record in self.of(part, graph, method).items()}

    def all_of(self, part: str) -> list[Record]:
        return [
            record for (found, _, _), by_seed in self._records.items() if found == part for record in by_seed.values()
        ]
