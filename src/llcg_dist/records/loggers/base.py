"""The interface of an experiment logger, and the data that it is given."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from llcg_dist.records.columns import sent_bytes

ID_FILES = ("mlflow.json", "wandb.json")
"""Files of a run directory with the id under which a logger knows its run."""
SCORES = ("val_score", "test_score", "train_loss")
"""Columns that are plotted over the bytes sent as well as over rounds."""


@dataclass(frozen=True)
class Point:
    """The scalars of a row of metrics.jsonl, without columns that are null or no number."""

    round: int
    sent: int
    """Bytes sent from the start of the run to the end of this round."""
    scalars: dict[str, float]

    @property
    def scores(self) -> dict[str, float]:
        """The scalars among SCORES."""
        return {key: self.scalars[key] for key in SCORES if key in self.scalars}


class Points:
    """Turns rows, added in order, into points with the running total of bytes sent."""

    def __init__(self) -> None:
        self._sent = 0

    def add(self, row: dict[str, Any]) -> Point:
        """The point of the next row."""
        self._sent += sent_bytes(row)
        numbers = {key: value for key, value in row.items() if type(value) in (int, float) and key != "round"}
        if {"absent", "returned"} & row.keys():
            numbers["machines_absent"] = len(row.get("absent", []))
        if {"late", "answered_late"} & row.keys():
            numbers["machines_late"] = len(row.get("late", {}))
        return Point(row["round"], self._sent, numbers)


@dataclass(frozen=True)
class Table:
    """Text cells, as shown on the console and in the loggers."""

    header: list[str]
    rows: list[list[str]]

    def markdown(self) -> str:
        """The table in Markdown."""
        lines = [self.header, ["---"] * len(self.header), *self.rows]
        return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def saved_id(path: Path, key: str) -> str:
    """The id under which a logger knows this run; ValueError for what is none, because ids become parts of paths."""
    content = json.loads(path.read_text())
    found = content.get(key) if isinstance(content, dict) else None
    if not isinstance(found, str) or not re.fullmatch(r"[0-9A-Za-z]{1,64}", found):
        raise ValueError(f"{path}: {key} is not an id; remove the file")
    return found


class Logger(Protocol):
    """One experiment logger. Its methods may raise any exception: the logger is then dropped from the run."""

    def start(self, settings: dict[str, Any], earlier: Sequence[Point]) -> None:
        """Opens the logger. `settings`: by dotted key; `earlier`: the recorded rounds of a resumed run."""

    def round(self, point: Point) -> None:
        """Logs one round."""

    def finish(self, summary: dict[str, Any], comparison: Table) -> None:
        """Logs the summary and the comparison with other runs, and closes the logger."""
