"""The report: one self-contained HTML page, and every figure as PNG and CSV in the same folder."""

import html
import importlib.resources
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import matplotlib as mpl

from llcg_dist.errors import UserError
from llcg_dist.report.bars import bar_figures
from llcg_dist.report.curves import curve_figures, overview
from llcg_dist.report.figure import Figure, hover_json, inline_svg, save_png, write_csv, write_files
from llcg_dist.report.groups import Study, studies
from llcg_dist.report.parts import partition_figures
from llcg_dist.report.runs import find_runs, find_unfinished
from llcg_dist.report.style import COLOURS, DARK, SETTINGS
from llcg_dist.report.sweep import sweep_figures
from llcg_dist.report.tables import Row, results_table, runs_table, to_csv, to_html
from llcg_dist.report.theory import theory_figures

_TEST_COLUMN = "test % at best val"


def write_report(paths: Sequence[Path]) -> tuple[Path, dict[str, list[Row]]]:
    """Writes <first path>/report/; returns the path of the page, and {title of the study: table of results}."""
    runs, unfinished = find_runs(paths), find_unfinished(paths)
    folder = paths[0] / "report"
    try:
        folder.mkdir(exist_ok=True)
        with mpl.rc_context(SETTINGS):
            all_studies = studies(runs)
            prefixes = [f"{study.title}_" if len(all_studies) > 1 else "" for study in all_studies]
            sections = [_section(study, folder, prefix) for study, prefix in zip(all_studies, prefixes, strict=True)]
            save_png(overview(all_studies[0]), folder / "curves.png")
        (folder / "index.html").write_text(_page(sections, unfinished))
    except OSError as error:
        raise UserError(f"report: cannot write to {folder} ({error.strerror})") from None
    return folder / "index.html", {study.title: results_table(study) for study in all_studies}


def _section(study: Study, folder: Path, prefix: str) -> str:
    """Writes the files of one study, named with the prefix; returns its section of the page."""
    figures = [*sweep_figures(study), *curve_figures(study), *theory_figures(study)]
    figures += [*bar_figures(study), *partition_figures(study)]
    figures = [replace(figure, name=_slug(prefix + figure.name)) for figure in figures]
    for figure in figures:
        write_files(figure, folder)
    results, runs = results_table(study), runs_table(study)
    write_csv(folder / f"{_slug(prefix + 'results')}.csv", to_csv(results))
    write_csv(folder / f"{_slug(prefix + 'runs')}.csv", to_csv(runs))
    return "\n".join(
        [
            f"<section><h2>{html.escape(study.title)}</h2>",
            f"<p class='lead'>{html.escape(_lead(study))}</p>",
            to_html(results, f"Mean ± standard deviation over seeds; {study.metric} in %.", mark=_TEST_COLUMN),
            f"<p class='note'>{html.escape(_TABLE_NOTE)}</p>",
            _shared(study),
            "<div class='figures'>",
            *map(_figure, figures),
            "</div>",
            f"<details{' open' if len(runs) <= 12 else ''}><summary>Every run</summary>",
            to_html(runs, "As summary.json has it: scores are fractions."),
            "</details></section>",
        ]
    )


_TABLE_NOTE = (
    "Final is the model after the last round; best is the round with the highest validation score, and the test score "
    "is that round's. MB sent counts everything in both directions; the paper counts the machines' models on their way "
    "up only. A click on a column's head sorts by it."
)


def _lead(study: Study) -> str:
    """The sentence at the top of a section: runs, methods, swept settings, machines and rounds."""
    runs, methods = study.runs, dict.fromkeys(group.method for group in study.groups)
    machines = sorted({run.summary["num_machines"] for run in runs})
    rounds = sorted({len(run.rows) for run in runs})
    swept = f", over {', '.join(study.keys.values())}" if study.keys else ""
    return (
        f"{_number_of(len(runs), 'run')} of {', '.join(methods)}{swept}: {_span(machines, 'machine')}, "
        f"{_span(rounds, 'round')}."
    )


def _shared(study: Study) -> str:
    """The settings that all runs of a study share, as HTML."""
    items = "".join(
        f"<div><dt>{html.escape(key)}</dt><dd>{html.escape(str(value))}</dd></div>"
        for key, value in study.shared.items()
        if value is not None
    )
    return f"<details><summary>Settings that all these runs share</summary><dl>{items}</dl></details>"


def _figure(figure: Figure) -> str:
    """A figure as HTML: SVG, caption, links to its files, and points for the tooltips."""
    files = " ".join(f'<a href="{figure.name}.{kind}">{kind.upper()}</a>' for kind in ("png", "csv"))
    points = f"<script type='application/json'>{hover_json(figure)}</script>" if figure.hover else ""
    title, caption = html.escape(figure.title), html.escape(figure.caption)
    return (
        f"<figure id='{figure.name}'{' class=wide' if figure.wide else ''}><h3>{title}</h3>{inline_svg(figure)}{points}"
        f"<figcaption>{caption} <span>{files}</span></figcaption></figure>"
    )


def _page(sections: Sequence[str], unfinished: Sequence[Path]) -> str:
    """The HTML page with its style sheet and script inside."""
    package = importlib.resources.files("llcg_dist.report")
    light, dark = ("".join(f"--{name}:{colour};" for name, colour in colours.items()) for colours in (COLOURS, DARK))
    colours = f":root{{{light}}}@media(prefers-color-scheme:dark){{:root{{{dark}}}}}"
    left_out = f"Left out, because they have not ended: {', '.join(map(str, unfinished))}." if unfinished else ""
    warning = f"<p class='warning'>{html.escape(left_out)}</p>" if left_out else ""
    return "\n".join(
        [
            "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
            "<meta name='viewport' content='width=device-width,initial-scale=1'>",
            "<link rel='icon' href='data:,'>",  # otherwise the browser requests /favicon.ico
            f"<title>llcg_dist report</title><style>{colours}{(package / 'page.css').read_text()}</style></head><body>",
            f"<h1>llcg_dist report</h1>{warning}",
            *sections,
            f"<script>{(package / 'page.js').read_text()}</script></body></html>",
        ]
    )


def _span(values: Sequence[int], what: str) -> str:
    """`4 machines`, or `2 to 8 machines` for several values."""
    return _number_of(values[0], what) if len(values) == 1 else f"{values[0]} to {values[-1]} {what}s"


def _number_of(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _slug(name: str) -> str:
    """A file name made of letters, digits, dots, dashes and underscores."""
    return re.sub(r"[^A-Za-z0-9.-]+", "_", name).strip("_.")
