"""One page that opens anywhere: the table and the curves, with the picture inside it."""

import base64
import html
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from llcg_dist.report.plots import draw_curves
from llcg_dist.report.runs import find_runs

_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:1080px;margin:2em auto;padding:0 1em}"
    "table{border-collapse:collapse}td,th{padding:.3em .8em;border-bottom:1px solid #ccc;text-align:right}"
    "td:first-child,th:first-child{text-align:left}img{max-width:100%}"
)
_COLUMNS = {
    "algorithm": "method",
    "batchnorm_stats": "BatchNorm statistics",
    "seed": "seed",
    "final_val_score": "final val",
    "best_val_score": "best val",
    "test_score_at_best_val": "test at best val",
    "mb_up_per_round": "MB up a round",
    "mb_down_per_round": "MB down a round",
    "paper_mb_per_round": "paper's MB",
    "local_steps_total": "local steps",
    "seconds_total": "seconds",
}


def write_report(paths: Sequence[Path]) -> tuple[Path, list[dict[str, Any]]]:
    """Writes <first path>/report/; returns the page and the runs' summaries."""
    runs = find_runs(paths)
    folder = paths[0] / "report"
    folder.mkdir(exist_ok=True)
    draw_curves(runs, folder / "curves.png")
    picture = base64.b64encode((folder / "curves.png").read_bytes()).decode()
    summaries = [run.summary for run in runs]
    body = f"<h1>llcg_dist</h1>{_table(summaries)}<p><img alt='curves by round' src='data:image/png;base64,{picture}'>"
    page = f"<!doctype html><meta charset='utf-8'><title>llcg_dist report</title><style>{_STYLE}</style>{body}"
    (folder / "index.html").write_text(page)
    return folder / "index.html", summaries


def _table(summaries: Sequence[dict[str, Any]]) -> str:
    head = "".join(f"<th>{html.escape(name)}</th>" for name in _COLUMNS.values())
    rows = "".join(
        "<tr>" + "".join(f"<td>{html.escape(_cell(summary[key]))}</td>" for key in _COLUMNS) + "</tr>"
        for summary in summaries
    )
    return f"<table><tr>{head}</tr>{rows}</table>"


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
