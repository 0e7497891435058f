"""The tables of a study: results with a row per group of seeds, like Table 1 of the paper, and a row per run."""

import os
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llcg_dist.records.columns import sent_bytes
from llcg_dist.report.gaps import compared_methods, gap_to
from llcg_dist.report.groups import Group, Study, plain_text
from llcg_dist.report.paper import paper_result
from llcg_dist.report.runs import Run


@dataclass(frozen=True)
class Cell:
    """A table cell: the text shown, the unrounded value, and its standard deviation over seeds."""

    text: str
    value: Any = None
    std: float | None = None


EMPTY_CELL = Cell("–")
Row = dict[str, Cell]


def results_table(study: Study) -> list[Row]:
    """A row per group: means over its seeds, with standard deviations where it has several; scores in %.

    Columns that no group has a value for are left out: the paper's numbers, the gaps, the state of unfinished runs.
    """
    rows = [_result(study, group) for group in study.groups]
    gaps = [[name] for name in rows[0] if name.startswith("gap to ")]
    for names in [
        ["state"],
        ["paper: test %", "paper: MB"],
        ["cluster seconds"],
        ["screened updates"],
        ["epsilon"],
        *gaps,
    ]:
        if all(row[names[0]].text == EMPTY_CELL.text for row in rows):
            rows = [{name: cell for name, cell in row.items() if name not in names} for row in rows]
    return rows


def _result(study: Study, group: Group) -> Row:
    """The row of one group."""

    def over_seeds(key: str, scale: float, digits: int) -> Cell:
        values = [run.summary[key] for run in group.runs]
        return _mean([scale * value for value in values if value is not None], digits)

    paper = paper_result(group.runs[0])
    state = ", ".join(f"{run.rounds_text} rounds" for run in group.runs)
    return {
        "method": Cell(group.method, group.method),
        **_setting_cells(study, group),
        "state": EMPTY_CELL if group.finished else Cell(f"unfinished: {state}", "unfinished"),
        "seeds": Cell(str(len(group.runs)), len(group.runs)),
        "final val %": over_seeds("final_val_score", 100, 2),
        "best val %": over_seeds("best_val_score", 100, 2),
        "test % at best val": over_seeds("test_score_at_best_val", 100, 2),
        **_gap_cells(study, group),
        "paper: test %": Cell(_plus_minus(paper["mean"], paper["std"], 2), paper["mean"], paper["std"])
        if paper
        else EMPTY_CELL,
        "MB sent a round": _mean([sum(map(sent_bytes, run.rows)) / len(run.rows) / 1e6 for run in group.runs], 3),
        "MB as the paper counts": over_seeds("paper_mb_per_round", 1, 3),
        "paper: MB": Cell(f"{paper['mb']:.2f}", paper["mb"]) if paper and paper["mb"] else EMPTY_CELL,
        "MB in all": over_seeds("total_bytes", 1e-6, 2),
        "local steps": over_seeds("local_steps_total", 1, 0),
        "seconds": over_seeds("seconds_total", 1, 1),
        "cluster seconds": _mean([value for run in group.runs if (value := run.cluster_seconds()) is not None], 1),
        "screened updates": _screened(group),
        "epsilon": _mean([known["epsilon"] for run in group.runs if (known := run.summary.get("privacy"))], 2),
    }


def _screened(group: Group) -> Cell:
    """How many updates were screened; a seed without any counts as 0, a group without any has an empty cell."""
    counts = [run.summary.get("screened_updates") for run in group.runs]
    return _mean([count for count in counts if count is not None], 0) if any(counts) else EMPTY_CELL


def _gap_cells(study: Study, group: Group) -> Row:
    """How many percentage points of the test score lie between the group and single, and plain averaging."""
    cells = {}
    for role, method in compared_methods(study).items():
        gap = gap_to(study, group, role)
        cells[f"gap to {method}"] = EMPTY_CELL if gap is None else Cell(f"{gap:+.2f}", gap)
    return cells


# {key of summary.json: (column, scale, digits)} of the table of runs.
_RUN_COLUMNS = {
    "final_val_score": ("final val %", 100, 2),
    "best_val_score": ("best val %", 100, 2),
    "test_score_at_best_val": ("test % at best val", 100, 2),
    "mb_up_per_round": ("MB up a round", 1, 3),
    "mb_down_per_round": ("MB down a round", 1, 3),
    "feature_mb_per_round": ("MB of features a round", 1, 3),
    "paper_mb_per_round": ("MB as the paper counts", 1, 3),
    "local_steps_total": ("local steps", 1, 0),
    "seconds_total": ("seconds", 1, 1),
}


def runs_table(study: Study) -> list[Row]:
    """One row per run, from its summary.json, with scores in %, and where and when it was started first."""
    names = run_names([run.path for run in study.runs])
    return [
        _run(study, group, run, names[run.path]) for group in study.groups for run in [*group.runs, *group.repeated]
    ]


def _run(study: Study, group: Group, run: Run, name: str) -> Row:
    numbers = {}
    for key, (column, scale, digits) in _RUN_COLUMNS.items():
        value = run.summary[key]
        numbers[column] = EMPTY_CELL if value is None else Cell(f"{scale * value:,.{digits}f}", scale * value)
    seed, start = run.summary["seed"], run.starts[0] if run.starts else {}
    rounds = run.rounds_text + ("" if run.finished else ", unfinished") + (_REPEATED if run in group.repeated else "")
    return {
        "run": Cell(name, str(run.path)),
        "method": Cell(run.method, run.method),
        **_setting_cells(study, group),
        "seed": Cell(str(seed), seed),
        "rounds": Cell(rounds, len(run.rows)),
        **numbers,
        **{key: Cell(str(start[key]), str(start[key])) if key in start else EMPTY_CELL for key in _ORIGIN},
    }


_REPEATED = ", seed run again"
_ORIGIN = ("host", "version", "date", "command")


def run_names(paths: Sequence[Path]) -> dict[Path, str]:
    """Names of runs: their folder and the one around it, a sweep's for example; longer where two would be the same."""
    resolved = {path: path.resolve().parts for path in paths}
    length = 2
    while len({parts[-length:] for parts in resolved.values()}) < len(set(resolved.values())):
        length += 1
    return {path: os.sep.join(parts[-length:]).lstrip(os.sep) for path, parts in resolved.items()}


def _setting_cells(study: Study, group: Group) -> Row:
    """The settings in which the groups of the study differ."""
    texts = {key: "–" if value is None else plain_text(value) for key, value in group.keys.items()}
    return {study.keys[key]: Cell(texts[key], value) for key, value in group.keys.items()}


def to_csv(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Unrounded values as rows for a CSV file, with standard deviations in separate columns."""
    lines = []
    for row in rows:
        line: dict[str, Any] = {}
        for name, cell in row.items():
            line[name] = cell.value
            if cell.std is not None:
                line[f"{name} (std)"] = cell.std
        lines.append(line)
    return lines


def _mean(values: Sequence[float], digits: int) -> Cell:
    """Mean ± sample standard deviation; the value alone where there is one."""
    if not values:
        return EMPTY_CELL
    mean = statistics.fmean(values)
    if len(values) == 1:
        return Cell(f"{mean:,.{digits}f}", mean)
    std = statistics.stdev(values)
    return Cell(_plus_minus(mean, std, digits), mean, std)


def _plus_minus(mean: float, std: float, digits: int) -> str:
    return f"{mean:,.{digits}f} ± {std:,.{digits}f}" if std else f"{mean:,.{digits}f}"
