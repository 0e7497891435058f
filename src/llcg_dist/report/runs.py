"""Finds, reads and checks the records of finished runs."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any

import yaml

from llcg_dist.config.compare import flat_dict
from llcg_dist.errors import UserError, one_line
from llcg_dist.records.columns import sent_bytes

Check = Callable[[Any], bool]


def is_number(value: Any) -> bool:
    """Whether this is a finite number that is small enough to plot."""
    return type(value) in (int, float) and abs(value) < 1e30 and math.isfinite(value)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**63


def _is_counts(value: Any) -> bool:
    return isinstance(value, list) and len(value) > 0 and all(_is_count(v) for v in value)


def _optional(check: Check) -> Check:
    """A check that also accepts None."""
    return lambda value: value is None or check(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


_OPTIONAL_NUMBERS = ("final_val_score", "best_val_score", "test_score_at_best_val", "peak_rss_mb_machine")
_SUMMARY: dict[str, Check] = (
    dict.fromkeys(("algorithm", "dataset", "model", "metric"), _is_text)
    | dict.fromkeys(("seed", "num_machines", "local_steps_total", "total_bytes"), _is_count)
    | dict.fromkeys(_OPTIONAL_NUMBERS, _optional(is_number))
    | dict.fromkeys(("mb_up_per_round", "mb_down_per_round", "feature_mb_per_round", "paper_mb_per_round"), is_number)
    | dict.fromkeys(("seconds_total", "peak_rss_mb_server"), is_number)
)
_ROW: dict[str, Check] = (
    dict.fromkeys(("round", "local_steps", "bytes_up", "bytes_down"), _is_count)
    | dict.fromkeys(("feature_bytes", "gradient_bytes", "control_bytes"), _is_count)
    | dict.fromkeys(("val_score", "test_score", "train_loss"), _optional(is_number))
    | dict.fromkeys(("seconds_local", "seconds_exchange", "seconds_correct"), is_number)
    | dict.fromkeys(("seconds_evaluate", "seconds_round"), is_number)
)
# Columns of metrics.jsonl that every method may have.
_STANDARD_COLUMNS = {*_ROW, "exchanges", "feature_id_bytes", "feature_row_bytes"}
_STANDARD_COLUMNS |= {"checkpoint_round", "checkpoint_bytes", "seconds_checkpoint", "seconds_prepare"}
_PARTITION: dict[str, Check] = {
    "partitioner": _is_text, "seed": _is_count, "num_parts": _is_count, "num_edges": _is_count, "cut_edges": _is_count,
    "label_counts": _is_counts, "parts": lambda value: isinstance(value, list),
    "edges_between_parts": lambda value: isinstance(value, list) and all(_is_counts(row) for row in value),
}  # fmt: skip
_PART: dict[str, Check] = {"nodes": _is_count, "train_nodes": _is_count, "label_counts": _is_counts}


@dataclass(frozen=True)
class Run:
    """The records of one finished run."""

    path: Path
    summary: dict[str, Any]
    """summary.json"""
    rows: list[dict[str, Any]]
    """metrics.jsonl, a row per round."""
    settings: dict[str, Any]
    """config.yaml as {dotted key: value}."""
    partition: dict[str, Any] | None = field(default=None, repr=False)
    """partition.json, of methods that train on parts."""

    @property
    def method(self) -> str:
        return str(self.summary["algorithm"])

    def column(self, key: str) -> list[Any]:
        """One value per round; None where a row does not have the key."""
        return [row.get(key) for row in self.rows]

    def sent_megabytes(self) -> list[float]:
        """Megabytes sent up to the end of each round, by all machines and the server."""
        return [total / 1e6 for total in accumulate(map(sent_bytes, self.rows))]

    def seconds(self) -> list[float]:
        """Seconds from the start of the first round until the model of each round was ready, without start-up."""
        return list(accumulate(row["seconds_round"] for row in self.rows))

    def compute_seconds(self) -> list[float]:
        """Seconds of the slowest machine's local steps and of the correction, summed up to the end of each round."""
        return list(accumulate(row["seconds_local"] + row["seconds_correct"] for row in self.rows))

    def extra_columns(self) -> list[str]:
        """Numeric columns beyond the standard ones, such as those of diagnostics."""
        return sorted(
            {
                key
                for row in self.rows
                for key, value in row.items()
                if is_number(value) and key not in _STANDARD_COLUMNS
            }
        )


def find_runs(paths: Sequence[Path]) -> list[Run]:
    """Every finished run in or below the folders, oldest first."""
    for path in paths:
        if not path.is_dir():
            raise UserError(f"report: {path} is not a folder; name a run directory, or a folder of them")
    summaries = {summary for path in paths for summary in path.rglob("summary.json") if _is_record(summary)}
    if not summaries:
        raise UserError(f"report: no finished run (summary.json) in {', '.join(map(str, paths))}")
    return [_read(summary.parent) for summary in sorted(summaries, key=lambda p: (p.stat().st_mtime, p))]


def find_unfinished(paths: Sequence[Path]) -> list[Path]:
    """Folders of runs without a summary.json, which have not ended."""
    started = {metrics.parent for path in paths for metrics in path.rglob("metrics.jsonl")}
    return sorted(folder for folder in started if not (folder / "summary.json").exists())


def _is_record(summary: Path) -> bool:
    """Whether a summary.json belongs to a run, and not to a logger that keeps files inside the run's folder."""
    return (summary.parent / "config.yaml").exists() or (summary.parent / "metrics.jsonl").exists()


def _read(folder: Path) -> Run:
    """Reads the records of one run; raises UserError for damaged or incomplete files."""
    try:
        summary = json.loads((folder / "summary.json").read_text())
        rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        settings = yaml.safe_load((folder / "config.yaml").read_text())
        partition_file = folder / "partition.json"
        partition = json.loads(partition_file.read_text()) if partition_file.exists() else None
    except (ValueError, OSError, RecursionError, yaml.YAMLError) as error:
        raise UserError(f"report: cannot read the records in {folder}: {one_line(error)}") from None
    _require(folder / "summary.json", summary, _SUMMARY)
    for row in rows:
        _require(folder / "metrics.jsonl", row, _ROW)
    if [row["round"] for row in rows] != list(range(1, len(rows) + 1)) or not rows:
        raise UserError(f"report: {folder / 'metrics.jsonl'}: its rows are not those of rounds 1, 2, …")
    if not isinstance(settings, dict):
        raise UserError(f"report: {folder / 'config.yaml'}: holds no settings")
    if partition is not None:
        _require(folder / "partition.json", partition, _PARTITION)
        for part in partition["parts"]:
            _require(folder / "partition.json", part, _PART)
    return Run(folder, summary, rows, flat_dict(settings), partition)


def _require(path: Path, content: Any, required: dict[str, Check]) -> None:
    """Raises UserError for the first key that is missing or fails its check."""
    for key, check in required.items():
        if not isinstance(content, dict) or key not in content or not check(content[key]):
            raise UserError(f"report: {path}: {key} is missing or of the wrong kind")
