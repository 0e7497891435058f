"""The table that compares a finished run with the finished runs in the folders next to it; loggers show it as text."""

import math
from pathlib import Path
from typing import Any

from llcg_dist.records.console import summary_table
from llcg_dist.records.loggers.base import Table
from llcg_dist.records.reading import read_object

_MAX_OTHER_RUNS = 20


def compare(summary: dict[str, Any], run_dir: Path) -> Table:
    """This run first, then the newest others on the same dataset; those that cannot be read are left out."""
    others = [path for path in run_dir.resolve().parent.glob("*/summary.json") if path.parent != run_dir.resolve()]
    names, summaries = [run_dir.name], [summary]
    for path in sorted(others, key=_age)[:_MAX_OTHER_RUNS]:
        try:
            other = read_object(path) or {}
            if other["dataset"] == summary["dataset"]:
                summary_table([other])  # raises KeyError where a column is missing
                names, summaries = [*names, path.parent.name], [*summaries, other]
        except (ValueError, KeyError, TypeError):
            continue
    header, rows = summary_table(summaries)
    return Table(["run", *header], [[name, *row] for name, row in zip(names, rows, strict=True)])


def _age(path: Path) -> float:
    """Infinite for a file that is gone meanwhile: its run begins anew, or was removed."""
    try:
        return -path.stat().st_mtime
    except OSError:
        return math.inf
