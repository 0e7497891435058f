"""Finds, reads and checks the records of runs, finished or not."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any

from llcg_dist.config.compare import flat_dict
from llcg_dist.config.recorded import read_settings
from llcg_dist.errors import UserError, one_line
from llcg_dist.records.classes import CLASSES_FILE
from llcg_dist.records.columns import sent_bytes
from llcg_dist.records.reading import is_number, readable_rows
from llcg_dist.records.starts import read_starts
from llcg_dist.report.partial import partial_summary

Check = Callable[[Any], bool]


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**63


def _is_seed(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_counts(value: Any) -> bool:
    return isinstance(value, list) and len(value) > 0 and all(_is_count(v) for v in value)


def _optional(check: Check) -> Check:
    """A check that also accepts None."""
    return lambda value: value is None or check(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


_OPTIONAL_NUMBERS: tuple[str, ...] = ("final_val_score", "best_val_score", "test_score_at_best_val")
_OPTIONAL_NUMBERS += ("peak_rss_mb_machine", "peak_rss_mb_server", "paper_mb_per_round")
_SUMMARY: dict[str, Check] = (
    dict.fromkeys(("algorithm", "dataset", "model", "metric"), _is_text)
    | {"seed": _is_seed}
    | dict.fromkeys(("num_machines", "local_steps_total", "total_bytes"), _is_count)
    | dict.fromkeys(_OPTIONAL_NUMBERS, _optional(is_number))
    | dict.fromkeys(("mb_up_per_round", "mb_down_per_round", "feature_mb_per_round", "seconds_total"), is_number)
)
_ROW: dict[str, Check] = (
    dict.fromkeys(("round", "local_steps", "bytes_up", "bytes_down"), _is_count)
    | dict.fromkeys(("feature_bytes", "gradient_bytes", "control_bytes"), _is_count)
    | dict.fromkeys(("val_score", "test_score", "train_loss"), _optional(is_number))
    | dict.fromkeys(("seconds_local", "seconds_exchange", "seconds_correct"), is_number)
    | dict.fromkeys(("seconds_evaluate", "seconds_round"), is_number)
)
# Columns of metrics.jsonl that every method may have.
_STANDARD_COLUMNS = {*_ROW, "exchanges", "feature_id_bytes", "feature_row_bytes", "sealing_bytes"}
_STANDARD_COLUMNS |= {"checkpoint_round", "checkpoint_bytes", "seconds_checkpoint", "seconds_prepare"}
_STANDARD_COLUMNS |= {"seconds_correct_beside", "cpu_correct_beside", "cpu_correct", "cpu_evaluate", "cluster_seconds"}
_PARTITION: dict[str, Check] = {
    "partitioner": _is_text, "seed": _is_seed, "num_parts": _is_count, "num_edges": _is_count, "cut_edges": _is_count,
    "label_counts": _is_counts, "parts": lambda value: isinstance(value, list),
    "edges_between_parts": lambda value: isinstance(value, list) and all(_is_counts(row) for row in value),
}  # fmt: skip
_NAMES = {"class_names": lambda value: isinstance(value, list) and all(map(_is_text, value))}
_CLASS = {"class": _is_text, "support": _is_count} | dict.fromkeys(("precision", "recall", "f1"), _optional(is_number))
_PART: dict[str, Check] = {"nodes": _is_count, "train_nodes": _is_count, "label_counts": _is_counts}


@dataclass(frozen=True)
class Run:
    """The records of one run."""

    path: Path
    summary: dict[str, Any]
    """summary.json; of an unfinished run, what its rows say so far."""
    rows: list[dict[str, Any]]
    """metrics.jsonl, a row per round."""
    settings: dict[str, Any]
    """config.yaml as {dotted key: value}."""
    partition: dict[str, Any] | None = field(default=None, repr=False)
    """partition.json, of methods that train on parts."""
    finished: bool = True
    classes: dict[str, Any] | None = field(default=None, repr=False)
    """classes.json: the scores of every class; None in runs of versions that did not write it."""
    starts: list[dict[str, Any]] = field(default_factory=list, repr=False)
    """starts.json: command, version, date and host of each start."""

    @property
    def method(self) -> str:
        return str(self.summary["algorithm"])

    @property
    def rounds_text(self) -> str:
        """`20`, or `7 of 20` of a run that is unfinished or stopped early."""
        planned = self.settings.get("num_rounds", "?")
        if self.finished:
            return f"{len(self.rows)} of {planned}, stopped early" if self.stopped_early else str(len(self.rows))
        return f"{len(self.rows)} of {planned}"

    @property
    def stopped_early(self) -> bool:
        return bool(self.summary.get("stopped_early"))

    def column(self, key: str) -> list[Any]:
        """One value per round; None where a row does not have the key."""
        return [row.get(key) for row in self.rows]

    def numbers(self, key: str) -> list[float]:
        """One number per round; 0 where a row has none."""
        return [value if is_number(value) else 0.0 for value in self.column(key)]

    def sent_megabytes(self) -> list[float]:
        """Megabytes sent up to the end of each round, by all machines and the server."""
        return [total / 1e6 for total in accumulate(map(sent_bytes, self.rows))]

    def seconds(self) -> list[float]:
        """Seconds from the start of the first round until the model of each round was ready, without start-up."""
        return list(accumulate(row["seconds_round"] for row in self.rows))

    def compute_seconds(self) -> list[float]:
        """Seconds of the slowest machine's local steps, or of a correction beside them that takes longer, and of the
        correction after them, summed up to the end of each round."""
        beside, steps, after = map(self.numbers, ("seconds_correct_beside", "seconds_local", "seconds_correct"))
        return list(accumulate(max(b, s) + a for b, s, a in zip(beside, steps, after, strict=True)))

    def cluster_seconds(self) -> float | None:
        """What the rounds would take with a core for each rank; None in runs of versions that did not record it."""
        values = self.column("cluster_seconds")
        return sum(values) if all(map(is_number, values)) else None

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
    """Every run in or below the folders that has a round to show, oldest first, and unfinished ones last."""
    for path in paths:
        if not path.is_dir():
            raise UserError(f"report: {path} is not a folder; name a run directory, or a folder of them")
    summaries = filter(_is_record, _found(paths, "summary.json"))
    finished = [_read(summary.parent) for summary in sorted(summaries, key=lambda p: (p.stat().st_mtime, p))]
    unfinished = [run for folder in find_unfinished(paths) if (run := _read_unfinished(folder)) is not None]
    if not finished and not unfinished:
        raise UserError(f"report: no run with a round to show (metrics.jsonl) in {', '.join(map(str, paths))}")
    return finished + unfinished


def find_unfinished(paths: Sequence[Path]) -> list[Path]:
    """Folders of runs without a summary.json, which have not ended."""
    started = (metrics.parent for metrics in _found(paths, "metrics.jsonl"))
    return sorted(folder for folder in started if not (folder / "summary.json").exists())


def _found(paths: Sequence[Path], name: str) -> list[Path]:
    """All files of this name in or below the folders, each once, however many paths lead to it."""
    return list({file.resolve(): file for path in paths for file in path.rglob(name)}.values())


def _is_record(summary: Path) -> bool:
    """Whether a summary.json belongs to a run, and not to a logger that keeps files inside the run's folder."""
    return (summary.parent / "config.yaml").exists() or (summary.parent / "metrics.jsonl").exists()


def _read_unfinished(folder: Path) -> Run | None:
    """The rows so far of a run without summary.json; None where it has none yet, or no settings."""
    if not (folder / "config.yaml").exists() or not readable_rows(folder):
        return None
    return _read(folder, finished=False)


def _read(folder: Path, finished: bool = True) -> Run:
    """Reads the records of one run; raises UserError for damaged or incomplete files."""
    try:
        settings = read_settings(folder / "config.yaml")
    except UserError as error:
        raise UserError(f"report: {error}") from None
    (summary,) = _read_json(folder / "summary.json") if finished else [{}]
    rows = _read_json(folder / "metrics.jsonl", lines=True) if finished else readable_rows(folder)
    if finished:
        _require(folder / "summary.json", summary, _SUMMARY)
    partition, classes = (_read_if_there(folder / name) for name in ("partition.json", CLASSES_FILE))
    for row in rows:
        _require(folder / "metrics.jsonl", row, _ROW)
    if [row["round"] for row in rows] != list(range(1, len(rows) + 1)) or not rows:
        raise UserError(f"report: {folder / 'metrics.jsonl'}: its rows are not those of rounds 1, 2, …")
    starts, flat = read_starts(folder), flat_dict(settings)
    if not finished or summary.get("num_rounds", len(rows)) != len(rows):  # resumed with more rounds, and not done
        finished, summary = False, partial_summary(flat, rows, starts)
        _require(folder / "config.yaml", summary, _SUMMARY)
    if partition is not None:
        _require(folder / "partition.json", partition, _PARTITION)
        _require(folder / "partition.json", {"class_names": [], **partition}, _NAMES)
        for part in partition["parts"]:
            _require(folder / "partition.json", part, _PART)
    if classes is not None:
        require_class_results(folder / CLASSES_FILE, classes)
    return Run(folder, summary, rows, flat, partition, finished, classes if finished else None, starts)


def _read_json(path: Path, lines: bool = False) -> list[Any]:
    """What a file holds, or each of its lines; raises UserError where one of them is not whole."""
    place = f"{path}"
    try:
        text, values = path.read_text("utf-8"), []
        for number, part in enumerate(text.splitlines() if lines else [text], start=1):
            place = f"{path}: line {number}" if lines else f"{path}"
            values.append(json.loads(part))
    except (ValueError, OSError, RecursionError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or one_line(error)
        rule = "restore the file, or move the run's folder away"
        raise UserError(f"report: {place}: cannot be read ({reason}); {rule}") from None
    return values


def _read_if_there(path: Path) -> Any:
    return _read_json(path)[0] if path.exists() else None


def require_class_results(path: Path, content: Any) -> None:
    """Raises UserError unless this is the content of classes.json."""
    _require(path, content, dict.fromkeys(("val", "test"), _optional(lambda value: isinstance(value, dict))))
    for scores in (content[split] for split in ("val", "test") if content[split] is not None):
        _require(path, scores, {"classes": lambda value: isinstance(value, list) and len(value) > 0})
        size = len(scores["classes"])
        for row in scores["classes"]:
            _require(path, row, _CLASS)
        matrix = scores.get("confusion")
        rows_fit = isinstance(matrix, list) and all(_is_counts(row) and len(row) == size for row in matrix)
        if matrix is not None and not (rows_fit and len(matrix) == size):
            raise UserError(f"report: {path}: confusion is of the wrong kind")


def _require(path: Path, content: Any, required: dict[str, Check]) -> None:
    """Raises UserError for the first key that is missing or fails its check."""
    for key, check in required.items():
        if not isinstance(content, dict) or key not in content or not check(content[key]):
            raise UserError(f"report: {path}: {key} is missing or of the wrong kind")
