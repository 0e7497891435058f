"""What a run directory says about a run at this moment: config.yaml, metrics.jsonl, summary.json, and its lock."""

import json
import platform
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from llcg_dist.config.algorithm import method_label
from llcg_dist.config.compare import flat_dict
from llcg_dist.errors import UserError, one_line
from llcg_dist.job.run_dir import is_locked
from llcg_dist.records.columns import BYTES
from llcg_dist.records.reading import readable_rows
from llcg_dist.records.starts import read_starts

RECENT = 10
"""Rounds that means are taken over: what a round costs now."""
PHASES = ("local", "exchange", "correct", "correct_beside", "evaluate", "prepare", "checkpoint", "diagnostics")
_SLOW = 1.25
"""A part is slow whose local steps take so many times as long as those of the median part."""
_SILENT_ROUNDS, _SILENT_SECONDS = 10, 60.0
"""A run is called silent that has written no row for so many rounds' time and seconds."""


@dataclass(frozen=True)
class RunState:
    """The records of a run, finished or going on."""

    path: Path
    settings: dict[str, Any]
    """config.yaml by dotted key."""
    rows: list[dict[str, Any]]
    finished: bool
    silent_seconds: float
    """How long ago metrics.jsonl or a log was written last."""
    start: dict[str, Any]
    """The newest entry of starts.json."""
    running: bool | None
    """Whether a process works in the folder; None where that is not known, of a run on another host for example."""

    @property
    def title(self) -> str:
        """`llcg on cora, 4 machines, started 2026-01-01T10:00:00 on host7`."""
        of = self.settings.get
        method = method_label(of("algorithm.name", "?"), of("algorithm.target"))
        text = f"{method} on {of('dataset.name', '?')}, {of('cluster.num_machines', '?')} machines"
        return text + (f", started {self.start['date']} on {self.start.get('host')}" if "date" in self.start else "")

    @property
    def planned_rounds(self) -> int:
        planned = self.settings.get("num_rounds")
        if self.finished or not isinstance(planned, int):
            return len(self.rows)
        return max(planned, len(self.rows))

    @property
    def stopping(self) -> str:
        """Why the run ends before its time (early_stop.*); empty where it does not."""
        return next((str(row["early_stop"]) for row in self.rows if row.get("early_stop")), "")

    @property
    def best(self) -> dict[str, Any] | None:
        """The row with the best validation score."""
        scored = [row for row in self.rows if _is_number(row.get("val_score"))]
        return max(scored, key=lambda row: row["val_score"], default=None)

    @property
    def is_silent(self) -> bool:
        """Whether the run should have written a row by now, so that it may be stopped or stuck."""
        expected = _SILENT_ROUNDS * recent_mean(self.rows, "seconds_round")
        return not self.finished and self.silent_seconds > max(_SILENT_SECONDS, expected)

    def values(self, key: str) -> list[float]:
        """The numbers in a column, rounds without one left out."""
        return [float(row[key]) for row in self.rows if _is_number(row.get(key))]

    def megabytes(self) -> float:
        """Sent in all rounds so far, everything in both directions."""
        return sum(sum(self.values(key)) for key in BYTES) / 1e6

    def seconds(self) -> float:
        return sum(self.values("seconds_round"))

    def seconds_left(self) -> float:
        """What the rounds that are left would take at the present pace."""
        return (self.planned_rounds - len(self.rows)) * recent_mean(self.rows, "seconds_round")

    def phases(self) -> dict[str, float]:
        """{phase: mean seconds in the last rounds} of the phases that are recorded."""
        means = {phase: recent_mean(self.rows, f"seconds_{phase}") for phase in PHASES}
        return {phase: seconds for phase, seconds in means.items() if seconds > 0}

    def part_seconds(self) -> list[float]:
        """Mean seconds of every part's local steps in the last rounds; empty where rows do not say."""
        rows = [row.get("seconds_local_by_part") for row in self.rows[-RECENT:]]
        recorded = [times for times in rows if isinstance(times, list) and times and all(map(_is_number, times))]
        return [statistics.fmean(times) for times in zip(*recorded, strict=False)]

    def slow(self) -> str:
        """Who the others wait for, in a sentence; empty where nobody stands out."""
        parts, phases = self.part_seconds(), self.phases()
        verdicts = []
        if len(parts) > 1 and max(parts) > _SLOW * (median := statistics.median_low(parts)) > 0:
            ratio = max(parts) / median
            verdicts.append(f"part {parts.index(max(parts))} takes {ratio:.1f} times as long as the median part")
        evaluate, beside = self._held_up(), phases.get("correct_beside", 0.0)
        if evaluate + beside > _SLOW * phases.get("local", 0.0) > 0:
            what = f"correction beside them ({beside:.2f} s; lower algorithm.S)" if beside > evaluate else ""
            what = what or f"evaluation ({evaluate:.2f} s; raise evaluate.every)"
            verdicts.append(f"machines wait for the server's {what}")
        return "; ".join(verdicts)

    def _held_up(self) -> float:
        """Mean seconds in the last rounds that the server gave to evaluation itself, or waited for: less than an
        evaluation takes where another process makes it."""
        phases = [row["timeline"]["evaluate"] for row in self.rows[-RECENT:] if "evaluate" in row.get("timeline", {})]
        if phases:
            return statistics.fmean(end - begin for begin, end in phases)
        return self.phases().get("evaluate", 0.0)

    def warnings(self) -> list[str]:
        """The newest warnings, with their rounds."""
        found = [(row["round"], text) for row in self.rows for text in row.get("warnings") or []]
        return [f"round {round_}: {text}" for round_, text in found[-3:]]


def recent_mean(rows: Sequence[dict[str, Any]], key: str) -> float:
    """The mean of a column over the last rounds; 0 where they have none."""
    values = [row[key] for row in rows[-RECENT:] if _is_number(row.get(key))]
    return statistics.fmean(values) if values else 0.0


def read_state(path: Path) -> RunState:
    """Reads the files as they are now; UserError where the folder holds no run."""
    if not path.is_dir():
        raise UserError(f"watch: {path} is not a folder; name a run directory")
    try:
        settings = yaml.safe_load((path / "config.yaml").read_text())
    except FileNotFoundError:
        settings = _not_started(path)
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise UserError(f"watch: cannot read {path / 'config.yaml'}: {one_line(error)}") from None
    if not isinstance(settings, dict):
        raise UserError(f"watch: {path / 'config.yaml'}: holds no settings")
    start: dict[str, Any] = next(reversed(read_starts(path)), {})
    running = is_locked(path) if start.get("host") == platform.node() else None
    # The lock is looked at first: a run that ends meanwhile is finished, not stopped.
    rows = readable_rows(path)
    finished = _is_finished(path, rows)
    silent = time.time() - _last_written(path)
    return RunState(path, flat_dict(settings), rows, finished, silent, start, None if finished else running)


def _last_written(path: Path) -> float:
    """When the run wrote a row or a line of a log last; of a job that is starting, when it made its folder."""
    written = [path / "metrics.jsonl", *(path / "logs").glob("*")]
    return max((file.stat().st_mtime for file in written if file.exists()), default=path.stat().st_mtime)


def _not_started(path: Path) -> dict[str, Any]:
    """No settings, where a job has made the folder and is starting; UserError for any other folder."""
    if (path / "logs").is_dir():
        return {}
    below = sorted(str(config.parent) for config in path.glob("*/config.yaml"))
    advice = f"name one of the runs in it: {', '.join(below[:5])}" if below else "name a run directory"
    raise UserError(f"watch: {path} holds no run (config.yaml); {advice}")


def _is_finished(path: Path, rows: Sequence[Any]) -> bool:
    """Whether summary.json is of these rows: that of a run that was resumed with more rounds is of fewer."""
    try:
        return len(rows) > 0 and json.loads((path / "summary.json").read_text())["num_rounds"] == len(rows)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)
