"""Reads the records of a run that may be writing them at this moment. Imports no torch."""

import json
import math
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

Row = dict[str, Any]
_NUMBERS = ("val_score", "test_score", "train_loss", "checkpoint_round")
"""Columns that are computed with whenever rows are read; null where a round has none."""


def readable_rows(folder: Path) -> list[Row]:
    """The rows of metrics.jsonl up to the first line that is not whole."""
    try:
        return list(takewhile(_is_whole, rows_in_order(folder)))
    except OSError:
        return []


def rows_in_order(folder: Path) -> Iterator[Row]:
    """The JSON objects in metrics.jsonl that name the rounds 1, 2, 3, …, up to the first line that is torn or out of
    order; their other columns are as they are."""
    for round_, line in enumerate((folder / "metrics.jsonl").read_bytes().splitlines(), start=1):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            return
        if not isinstance(row, dict) or row.get("round") != round_:
            return
        yield row


def is_number(value: Any) -> bool:
    """Whether this is a finite number that is small enough to plot."""
    return type(value) in (int, float) and abs(value) < 1e30 and math.isfinite(value)


def _is_whole(row: Row) -> bool:
    warnings = row.get("warnings") or []
    numbers = all(row.get(key) is None or is_number(row[key]) for key in _NUMBERS)
    return numbers and isinstance(warnings, list)


def read_object(path: Path) -> Row | None:
    """The JSON object in a file of a run, such as summary.json; None where there is none that can be read."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None
