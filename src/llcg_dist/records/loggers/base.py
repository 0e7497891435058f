"""What a logger is given."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from llcg_dist.records.columns import sent_bytes

SCORES = ("val_score", "test_score", "train_loss")
"""Drawn by bytes too."""


@dataclass(frozen=True)
class Point:
    """A row of metrics.jsonl as curves want it: its numbers, without those that are null."""

    round: int
    sent: int
    """Bytes that have crossed up to the end of this round."""
    scalars: dict[str, float]

    @property
    def scores(self) -> dict[str, float]:
        return {key: self.scalars[key] for key in SCORES if key in self.scalars}


class Points:
    """Adds the bytes up from row to row."""

    def __init__(self) -> None:
        self._sent = 0

    def add(self, row: dict[str, Any]) -> Point:
        self._sent += sent_bytes(row)
        numbers = {key: value for key, value in row.items() if type(value) in (int, float) and key != "round"}
        return Point(row["round"], self._sent, numbers)


@dataclass(frozen=True)
class Table:
    header: list[str]
    rows: list[list[str]]

    def markdown(self) -> str:
        lines = [self.header, ["---"] * len(self.header), *self.rows]
        return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


class Logger(Protocol):
    """May raise anything: see Loggers."""

    def start(self, settings: dict[str, Any], earlier: Sequence[Point]) -> None:
        """`settings` by dotted key; `earlier` are the rounds that a resumed run has behind it."""

    def round(self, point: Point) -> None: ...

    def finish(self, summary: dict[str, Any], comparison: Table) -> None: ...
