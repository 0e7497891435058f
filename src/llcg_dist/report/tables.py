"""The two tables of a study: one row per group of seeds, like Table 1 of the paper, and one row per run."""

import html
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from llcg_dist.records.columns import sent_bytes
from llcg_dist.report.groups import Group, Study
from llcg_dist.report.paper import papers_cell
from llcg_dist.report.runs import Run


@dataclass(frozen=True)
class Cell:
    """As it is shown, and the whole number behind it."""

    text: str
    value: Any = None
    std: float | None = None


NOTHING = Cell("–")
Row = dict[str, Cell]


def results_table(study: Study) -> list[Row]:
    """Mean ± standard deviation over seeds; the paper's numbers where one of the groups has its cell there."""
    rows = [_result(study, group) for group in study.groups]
    if not any(row["paper: test %"].text != NOTHING.text for row in rows):
        for row in rows:
            del row["paper: test %"], row["paper: MB"]
    return rows


def _result(study: Study, group: Group) -> Row:
    def over_seeds(key: str, scale: float, digits: int) -> Cell:
        values = [run.summary[key] for run in group.runs]
        return _mean([scale * value for value in values if value is not None], digits)

    paper = papers_cell(group.runs[0])
    settings = {study.keys[key]: Cell(_plain(value), value) for key, value in group.keys.items()}
    return {
        "method": Cell(group.method, group.method),
        **settings,
        "seeds": Cell(str(len(group.runs)), len(group.runs)),
        "final val %": over_seeds("final_val_score", 100, 2),
        "best val %": over_seeds("best_val_score", 100, 2),
        "test % at best val": over_seeds("test_score_at_best_val", 100, 2),
        "paper: test %": Cell(_plus_minus(paper["mean"], paper["std"], 2), paper["mean"], paper["std"])
        if paper
        else NOTHING,
        "MB sent a round": _mean([sum(map(sent_bytes, run.rows)) / len(run.rows) / 1e6 for run in group.runs], 3),
        "MB as the paper counts": over_seeds("paper_mb_per_round", 1, 3),
        "paper: MB": Cell(f"{paper['mb']:.2f}", paper["mb"]) if paper and paper["mb"] else NOTHING,
        "MB in all": over_seeds("total_bytes", 1e-6, 2),
        "local steps": over_seeds("local_steps_total", 1, 0),
        "seconds": over_seeds("seconds_total", 1, 1),
    }


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
    """What each summary.json says."""
    return [_run(study, group, run) for group in study.groups for run in group.runs]


def _run(study: Study, group: Group, run: Run) -> Row:
    settings = {study.keys[key]: Cell(_plain(value), value) for key, value in group.keys.items()}
    numbers = {name: _number(run.summary[key]) for key, name in _RUN_COLUMNS.items()}
    seed = run.summary["seed"]
    return {
        "run": Cell(run.path.name, str(run.path)),
        "method": Cell(run.method, run.method),
        **settings,
        "seed": Cell(str(seed), seed),
        **numbers,
    }


def to_html(rows: Sequence[Row], label: str, mark: str | None = None) -> str:
    """`mark`: the column whose highest value stands in bold."""
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
    """Whole numbers, with the standard deviation in a column of its own."""
    found = []
    for row in rows:
        line: dict[str, Any] = {}
        for name, cell in row.items():
            line[name] = cell.value
            if cell.std is not None:
                line[f"{name} (std)"] = cell.std
        found.append(line)
    return found


def _mean(values: Sequence[float], digits: int) -> Cell:
    if not values:
        return NOTHING
    mean = statistics.fmean(values)
    if len(values) == 1:
        return Cell(f"{mean:,.{digits}f}", mean)
    std = statistics.stdev(values)
    return Cell(_plus_minus(mean, std, digits), mean, std)


def _plus_minus(mean: float, std: float, digits: int) -> str:
    return f"{mean:,.{digits}f} ± {std:,.{digits}f}" if std else f"{mean:,.{digits}f}"


def _number(value: Any) -> Cell:
    if value is None:
        return NOTHING
    return Cell(f"{value:.4g}" if isinstance(value, float) else str(value), value)


def _plain(value: Any) -> str:
    return "–" if value is None else f"{value:g}" if type(value) is float else str(value)
