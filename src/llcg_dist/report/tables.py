"""The tables of a study: results with a row per group of seeds, like Table 1 of the paper, and a row per run."""

import html
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from llcg_dist.records.columns import sent_bytes
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
    """Mean ± standard deviation over seeds; columns with the paper's numbers if it has some for one of the groups."""
    rows = [_result(study, group) for group in study.groups]
    if not any(row["paper: test %"].text != EMPTY_CELL.text for row in rows):
        for row in rows:
            del row["paper: test %"], row["paper: MB"]
    return rows


def _result(study: Study, group: Group) -> Row:
    """The row of one group."""

    def over_seeds(key: str, scale: float, digits: int) -> Cell:
        values = [run.summary[key] for run in group.runs]
        return _mean([scale * value for value in values if value is not None], digits)

    paper = paper_result(group.runs[0])
    return {
        "method": Cell(group.method, group.method),
        **_setting_cells(study, group),
        "seeds": Cell(str(len(group.runs)), len(group.runs)),
        "final val %": over_seeds("final_val_score", 100, 2),
        "best val %": over_seeds("best_val_score", 100, 2),
        "test % at best val": over_seeds("test_score_at_best_val", 100, 2),
        "paper: test %": Cell(_plus_minus(paper["mean"], paper["std"], 2), paper["mean"], paper["std"])
        if paper
        else EMPTY_CELL,
        "MB sent a round": _mean([sum(map(sent_bytes, run.rows)) / len(run.rows) / 1e6 for run in group.runs], 3),
        "MB as the paper counts": over_seeds("paper_mb_per_round", 1, 3),
        "paper: MB": Cell(f"{paper['mb']:.2f}", paper["mb"]) if paper and paper["mb"] else EMPTY_CELL,
        "MB in all": over_seeds("total_bytes", 1e-6, 2),
        "local steps": over_seeds("local_steps_total", 1, 0),
        "seconds": over_seeds("seconds_total", 1, 1),
    }


# {key of summary.json: column} of the table of runs.
_RUN_COLUMNS = {
    "final_val_score": "final val",
    "best_val_score": "best val",
    "test_score_at_best_val": "test at best val",
    "mb_up_per_round": "MB up a round",
    "mb_down_per_round": "MB down a round",
    "feature_mb_per_round": "MB of features",
    "paper_mb_per_round": "paper's MB",
    "local_steps_total": "local steps",
    "seconds_total": "seconds",
}


def runs_table(study: Study) -> list[Row]:
    """One row per run, from its summary.json."""
    return [_run(study, group, run) for group in study.groups for run in group.runs]


def _run(study: Study, group: Group, run: Run) -> Row:
    numbers = {name: _number(run.summary[key]) for key, name in _RUN_COLUMNS.items()}
    seed = run.summary["seed"]
    return {
        "run": Cell(run.path.name, str(run.path)),
        "method": Cell(run.method, run.method),
        **_setting_cells(study, group),
        "seed": Cell(str(seed), seed),
        **numbers,
    }


def _setting_cells(study: Study, group: Group) -> Row:
    """The settings in which the groups of the study differ."""
    texts = {key: "–" if value is None else plain_text(value) for key, value in group.keys.items()}
    return {study.keys[key]: Cell(texts[key], value) for key, value in group.keys.items()}


def to_html(rows: Sequence[Row], label: str, mark: str | None = None) -> str:
    """The table as HTML; the highest value of the column `mark` is bold."""
    best = max((row[mark].value for row in rows if row[mark].value is not None), default=None) if mark else None
    head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in rows[0])
    lines = []
    for row in rows:
        cells = []
        for name, cell in row.items():
            bold = ' class="best"' if mark == name and cell.value == best and len(rows) > 1 else ""
            value = "" if cell.value is None else f' data-value="{html.escape(str(cell.value))}"'
            cells.append(f"<td{bold}{value}>{html.escape(cell.text)}</td>")
        lines.append(f"<tr>{''.join(cells)}</tr>")
    caption, body = f"<caption>{html.escape(label)}</caption>", "".join(lines)
    return f"<div class='scroll'><table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"


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
    """Mean ± sample standard deviation."""
    if not values:
        return EMPTY_CELL
    mean = statistics.fmean(values)
    if len(values) == 1:
        return Cell(f"{mean:,.{digits}f}", mean)
    std = statistics.stdev(values)
    return Cell(_plus_minus(mean, std, digits), mean, std)


def _plus_minus(mean: float, std: float, digits: int) -> str:
    return f"{mean:,.{digits}f} ± {std:,.{digits}f}" if std else f"{mean:,.{digits}f}"


def _number(value: Any) -> Cell:
    if value is None:
        return EMPTY_CELL
    return Cell(f"{value:.4g}" if isinstance(value, float) else str(value), value)
