"""The report's page as HTML: head, a section per study with its tables and figures, style sheet and script inside."""

import html
import importlib.resources
import json
import os
import platform
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from llcg_dist.records.starts import origin
from llcg_dist.report.figure import Figure, data_link, hover_json
from llcg_dist.report.gaps import best_distributed, compared_methods
from llcg_dist.report.groups import Study
from llcg_dist.report.html_table import to_html
from llcg_dist.report.style import COLOURS, DARK
from llcg_dist.report.tables import Row, run_names

_TEST_COLUMN = "test % at best val"


@dataclass(frozen=True)
class Section:
    """What the page shows of one study."""

    study: Study
    figures: list[tuple[Figure, str]]
    """Figures with their <svg> elements."""
    tables: dict[str, list[Row]]
    """results, runs and every_class, which may be empty."""
    files: dict[str, bytes]
    """{file name: content} of the files that the page carries."""
    csv_names: dict[str, str]
    """{table: its file name}."""
    class_title: str
    dark: dict[str, str]
    """{shade of a method's colour on a light page: the same on a dark one}."""


def section_html(section: Section, folder: Path) -> str:
    """The section of one study; links to logs are relative to `folder`, where the page lies."""
    study, tables = section.study, section.tables
    methods = html.escape(json.dumps([group.method for group in study.groups]))
    runs = to_html(tables["runs"], "Scores in %, sizes in MB.", leave_out=["command"])
    return "\n".join(
        [
            f"<section data-methods='{methods}'><h2>{html.escape(study.title)}</h2>",
            f"<p class='lead'>{html.escape(_lead(study))}</p>",
            to_html(tables["results"], _results_caption(study), best=_best_cell(study)),
            f"<p class='note'>{html.escape(_table_note(study))} {_csv_link(section, 'results')}</p>",
            _shared(study),
            "<div class='figures'>",
            *(_figure(figure, svg, section) for figure, svg in section.figures),
            "</div>",
            _classes(section),
            f"<details{' open' if len(study.runs) <= 12 else ''}><summary>Every run</summary>{runs}",
            f"<p class='note'>{_csv_link(section, 'runs')}</p></details>",
            _origins(study, folder),
            "</section>",
        ]
    )


def _best_cell(study: Study) -> tuple[str, int] | None:
    """The cell of the results that is marked: the test score of the best distributed method."""
    best = best_distributed(study)
    return (_TEST_COLUMN, study.groups.index(best)) if best and len(study.groups) > 1 else None


def _results_caption(study: Study) -> str:
    several = any(len(group.runs) > 1 for group in study.groups)
    return f"{study.metric} in %" + ("; mean ± standard deviation over seeds." if several else ".")


def _table_note(study: Study) -> str:
    gaps = [f"gap to {method}" for method in compared_methods(study).values()]
    return (
        "Final is the model after the last round; best is the round with the highest validation score, and the test "
        "score is that round's; the best of the distributed methods is marked. "
        + (f"The {' and the '.join(gaps)} is the difference of the test scores, in percentage points. " if gaps else "")
        + "MB sent counts everything in both directions; the paper counts the machines' models on their way up only. "
        "A click on a column's head sorts by it, one on a legend hides a line."
    )


def _csv_link(section: Section, table: str) -> str:
    name = section.csv_names[table]
    return data_link(name, section.files[name], "CSV")


def _classes(section: Section) -> str:
    """Precision, recall, F1 and support of every class."""
    rows = section.tables["every_class"]
    if not rows:
        return ""
    table, link = to_html(rows, f"{section.class_title}."), _csv_link(section, "every_class")
    return f"<details><summary>Every class</summary>{table}<p class='note'>{link}</p></details>"


def _lead(study: Study) -> str:
    """The sentence at the top of a section: runs, methods, swept settings, machines and rounds."""
    runs, methods = study.runs, dict.fromkeys(group.method for group in study.groups)
    machines = sorted({run.summary["num_machines"] for run in runs})
    rounds = sorted({len(run.rows) for run in runs})
    swept = f", over {', '.join(study.keys.values())}" if study.keys else ""
    unfinished, stopped = sum(not run.finished for run in runs), sum(run.stopped_early for run in runs)
    return (
        f"{_number_of(len(runs), 'run')} of {', '.join(methods)}{swept}: {_span(machines, 'machine')}, "
        f"{_span(rounds, 'round')}."
        + (f" Unfinished, with their rounds so far: {unfinished}." if unfinished else "")
        + (f" Stopped early: {stopped}." if stopped else "")
        + (f" {repeated_text(study)}." if repeated_text(study) else "")
    )


def repeated_text(study: Study) -> str:
    """How many runs enter no mean because their seed was run again; empty where there are none."""
    repeated = sum(len(group.repeated) for group in study.groups)
    return f"Of a seed that was run again the newest run counts; in no mean: {repeated}" if repeated else ""


def _shared(study: Study) -> str:
    """The settings that all runs of a study share, as HTML."""
    items = "".join(
        f"<div><dt>{html.escape(key)}</dt><dd>{html.escape(str(value))}</dd></div>"
        for key, value in study.shared.items()
        if value is not None
    )
    return f"<details><summary>Settings that all these runs share</summary><dl>{items}</dl></details>"


def _origins(study: Study, folder: Path) -> str:
    """For every run its command, its place and links: to its settings, inside the page, and to its logs, beside it."""
    names, lines = run_names([run.path for run in study.runs]), []
    for run in study.runs:
        start, name = run.starts[0] if run.starts else {}, names[run.path]
        links = [data_link(f"{name.replace(os.sep, '_')}.yaml", (run.path / "config.yaml").read_bytes(), "config")]
        for file in ("logs/server.log", "logs"):
            if (run.path / file).exists():
                target = Path(os.path.relpath(run.path / file, folder)).as_posix()
                links.append(f'<a href="{html.escape(_url(target))}">{file}</a>')
        command = html.escape(str(start.get("command", "not recorded")))
        place = html.escape(f"{platform.node()}:{run.path.resolve()}")
        text = f"{html.escape(name)}: {' '.join(links)}, in <code>{place}</code><br><code>{command}</code>"
        lines.append(f'<li data-method="{html.escape(run.method)}">{text}</li>')
    note = (
        "<p class='note'>Settings are inside this page. Links to logs work where it lies beside the runs; elsewhere, "
        "look for them in the named folder of the host that made the page.</p>"
    )
    return f"<details><summary>Commands, settings and logs</summary>{note}<ul>{''.join(lines)}</ul></details>"


def _url(path: str) -> str:
    """A relative path as a URL."""
    return quote(path)


def _figure(figure: Figure, svg: str, section: Section) -> str:
    """A figure as HTML: SVG, caption, its files, and points for the tooltips."""
    links = " ".join(
        data_link(f"{figure.name}.{kind}", section.files[f"{figure.name}.{kind}"], kind.upper())
        for kind in ("png", "csv")
    )
    points = f"<script type='application/json'>{hover_json(figure, section.dark)}</script>" if figure.hover else ""
    title, caption = html.escape(figure.title), html.escape(figure.caption)
    method = f' data-method="{html.escape(figure.method)}"' if figure.method else ""
    return (
        f"<figure id='{figure.name}'{' class=wide' if figure.wide else ''}{method}><h3>{title}</h3>{svg}{points}"
        f"<figcaption>{caption} <span>{links}</span></figcaption></figure>"
    )


def page_html(sections: Sequence[str], paths: Sequence[Path], without_rounds: Sequence[Path]) -> str:
    """The HTML page with its style sheet and script inside."""
    package = importlib.resources.files("llcg_dist.report")
    light, dark = ("".join(f"--{name}:{colour};" for name, colour in colours.items()) for colours in (COLOURS, DARK))
    colours = f":root{{{light}}}@media(prefers-color-scheme:dark){{:root{{{dark}}}}}"
    left_out = f"Left out, because they have no round yet: {', '.join(map(str, without_rounds))}."
    warning = f"<p class='warning'>{html.escape(left_out)}</p>" if without_rounds else ""
    here = origin()
    command = shlex.join(["llcg", "report", *map(str, paths)])
    made = f"llcg_dist {here['version']}, {here['date'].replace('T', ' ')}, on {here['host']}"
    return "\n".join(
        [
            "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
            "<meta name='viewport' content='width=device-width,initial-scale=1'>",
            "<link rel='icon' href='data:,'>",  # otherwise the browser requests /favicon.ico
            f"<title>llcg_dist report</title><style>{colours}{(package / 'page.css').read_text()}</style></head><body>",
            f"<h1>llcg_dist report</h1><p class='note' id='origin'><code>{html.escape(command)}</code> "
            f"{html.escape(made)}</p>{warning}",
            *sections,
            f"<script>{(package / 'page.js').read_text()}</script></body></html>",
        ]
    )


def _span(values: Sequence[int], what: str) -> str:
    """`4 machines`, or `2 to 8 machines` for several values."""
    return _number_of(values[0], what) if len(values) == 1 else f"{values[0]} to {values[-1]} {what}s"


def _number_of(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
