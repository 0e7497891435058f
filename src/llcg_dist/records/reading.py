"""Reads the records of a run that may be writing them at this moment. Imports no torch."""

import json
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def readable_rows(folder: Path) -> list[Row]:
    """The rows of metrics.jsonl up to the first line that is not whole."""
    rows: list[Row] = []
    try:
        lines = (folder / "metrics.jsonl").read_bytes().splitlines()
    except OSError:
        return rows
    for line in lines:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            break
        if not isinstance(row, dict) or row.get("round") != len(rows) + 1:
            break
        rows.append(row)
    return rows
