"""The report: one self-contained HTML page, and every figure as PNG and CSV in the same folder."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import matplotlib as mpl

from llcg_dist.data.atomic_files import write_bytes
from llcg_dist.errors import UserError
from llcg_dist.report.bars import bar_figures
from llcg_dist.report.classes import class_figures, class_table
from llcg_dist.report.curves import curve_figures, overview
from llcg_dist.report.figure import csv_bytes, files_of, inline_svg, save_png
from llcg_dist.report.groups import Study, studies
from llcg_dist.report.membership import membership_figures
from llcg_dist.report.page_html import Section, page_html, section_html
from llcg_dist.report.parts import partition_figures
from llcg_dist.report.runs import find_runs, find_unfinished
from llcg_dist.report.style import SETTINGS, dark_shades
from llcg_dist.report.sweep import sweep_figures
from llcg_dist.report.tables import Row, results_table, runs_table, to_csv
from llcg_dist.report.theory import theory_figures


def write_report(paths: Sequence[Path]) -> tuple[Path, dict[str, list[Row]]]:
    """Writes <first path>/report/; returns the path of the page, and {title of the study: table of results}."""
    runs = find_runs(paths)
    shown = {run.path for run in runs}
    without_rounds = [folder for folder in find_unfinished(paths) if folder not in shown]
    folder = paths[0] / "report"
    try:
        folder.mkdir(exist_ok=True)
        with mpl.rc_context(SETTINGS):
            all_studies = studies(runs)
            prefixes = [f"{study.title}_" if len(all_studies) > 1 else "" for study in all_studies]
            sections = [_section(study, folder, prefix) for study, prefix in zip(all_studies, prefixes, strict=True)]
            save_png(overview(all_studies[0]), folder / "curves.png")
        write_bytes(folder / "index.html", page_html(sections, paths, without_rounds).encode())
    except OSError as error:
        raise UserError(f"report: cannot write to {folder} ({error.strerror})") from None
    return folder / "index.html", {study.title: results_table(study) for study in all_studies}


def _section(study: Study, folder: Path, prefix: str) -> str:
    """Writes the files of one study, named with the prefix; returns its section of the page."""
    figures = [*sweep_figures(study), *curve_figures(study), *membership_figures(study)]
    figures += [*class_figures(study), *theory_figures(study)]
    figures += [*bar_figures(study), *partition_figures(study)]
    figures = [replace(figure, name=_slug(prefix + figure.name)) for figure in figures]
    files: dict[str, bytes] = {}
    drawn, dark = [], dark_shades({group.method for group in study.groups}, len(study.groups))
    for figure in figures:
        files |= files_of(figure)
        drawn.append((figure, inline_svg(figure, dark)))  # after the PNG: it takes the background away
    tables = {"results": results_table(study), "runs": runs_table(study)}
    title, tables["every_class"] = class_table(study)
    for name, rows in tables.items():
        if rows:
            files[f"{_slug(prefix + name)}.csv"] = csv_bytes(to_csv(rows))
    for name, content in files.items():
        (folder / name).write_bytes(content)
    names = {name: f"{_slug(prefix + name)}.csv" for name in tables}
    return section_html(Section(study, drawn, tables, files, names, title, dark), folder)


def _slug(name: str) -> str:
    """A file name made of letters, digits, dots, dashes and underscores."""
    return re.sub(r"[^A-Za-z0-9.-]+", "_", name).strip("_.")
