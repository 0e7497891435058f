"""Figures of the diagnostics (terms of the theorems, the steps they ask for) and of S=auto's choices."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from llcg_dist.report.figure import Figure, hover_of, new_canvas
from llcg_dist.report.groups import Study
from llcg_dist.report.lines import column, draw_lines, label_axes, legend, legend_shape, plain_ticks, rounds

# {column: (symbol, meaning)} of the measured terms.
_TERMS = {
    "kappa_a_sq": ("kappa_A²", "what dropping the cut edges does to a machine's gradient"),
    "kappa_x_sq": ("kappa_X²", "how far a part's gradient is from the whole graph's"),
    "kappa_sq": ("kappa²", "both together"),
    "sigma_bias_sq": ("sigma_bias²", "the bias of sampling neighbours"),
    "sigma_var_sq": ("sigma_var²", "the spread of mini-batch gradients"),
    "sigma_global_sq": ("sigma_global²", "the spread of the server's mini-batch gradients"),
    "g_local": ("G_local", "the squared norm of the machines' mean gradient"),
    "g_global": ("G_global", "the squared norm of the server's gradient"),
    "lipschitz": ("L", "how fast the gradient turns near this model"),
}
_STEPS = {"theorem2_S": "S", "theorem1_K": "local_steps"}
"""{column with the steps that a theorem asks for: column with the steps taken}."""
_AUTO_S_PREFIX = "auto_s_"
_SHOWN_WITH_OTHERS = {"S", "seconds_diagnostics", "theorem_note"}
"""Columns that belong to one of the figures, and get no panel among the other columns."""


@dataclass(frozen=True)
class _Panel:
    """One column of metrics.jsonl, drawn over the rounds."""

    key: str
    label: str
    taken: str = ""
    """A column to draw as dotted lines in the same panel."""
    empty: str = "not recorded"
    """The text of a panel without values."""


def theory_figures(study: Study) -> list[Figure]:
    """Figures of the columns that diagnostics, S=auto and other methods record; none if there are no such columns."""
    columns = sorted({key for run in study.runs for key in run.extra_columns()})
    auto = [key for key in columns if key.startswith(_AUTO_S_PREFIX)]
    known = {*_TERMS, *_STEPS, *auto, *_SHOWN_WITH_OTHERS, *(f"{key}_error" for key in _TERMS)}
    others = [key for key in columns if key not in known]
    figures = [_terms(study, columns)] if _TERMS.keys() & set(columns) else []
    figures += [_steps(study)] if any("theorem2_S" in row for run in study.runs for row in run.rows) else []
    figures += [_auto(study, auto)] if auto else []
    figures += [_others(study, others)] if others else []
    return figures


def _terms(study: Study, columns: Sequence[str]) -> Figure:
    shown = {key: term for key, term in _TERMS.items() if key in columns}
    meanings = "; ".join(f"{name} is {meaning}" for name, meaning in shown.values())
    caption = (
        "Measured at the model that a round starts from (logarithmic). Bands hold the seeds and, where a term is "
        f"estimated from samples, one standard error beyond them. {meanings}."
    )
    panels = [_Panel(key, name) for key, (name, _) in shown.items()]
    return _grid("theory_terms", "Diagnostics: the terms of the theorems", caption, study, panels)


def _steps(study: Study) -> Figure:
    measured = [row for run in study.runs for row in run.rows if "theorem2_S" in row]
    not_applicable = sum(row["theorem2_S"] is None for row in measured)
    caption = (
        "Lines: how many correction steps Theorem 2 asks for in a round, and how many local steps Theorem 1 allows, by "
        "what was measured then. Dotted: the steps that were taken. "
    )
    if not_applicable:
        caption += (
            f"In {not_applicable} of {len(measured)} measured rounds the formula of Theorem 2 does not apply: the run "
            "has fewer steps in all than L²P (the rows' theorem_note)."
        )
    panels = [
        _Panel("theorem2_S", "correction steps S", "S", "Theorem 2 does not apply:\nfewer steps in all than L²P"),
        _Panel("theorem1_K", "local steps a round", "local_steps"),
        _Panel("seconds_diagnostics", "seconds that measuring took"),
    ]
    return _grid("theory_steps", "Diagnostics: steps asked for, steps taken", caption, study, panels)


def _auto(study: Study, keys: Sequence[str]) -> Figure:
    caption = (
        "Why S=auto took as many correction steps as it did: demand = K (1 - useful), rounded down, where useful is "
        "the alignment of the gradients with and without cut edges times the share of the machines' update on which "
        "they agree (1 - divergence). All are smoothed over the rounds."
    )
    panels = [
        _Panel("S", "S taken"),
        *(_Panel(key, key.removeprefix(_AUTO_S_PREFIX).replace("_", " ")) for key in keys),
    ]
    return _grid("auto_s", "S=auto: the steps and their reasons", caption, study, panels)


def _others(study: Study, keys: Sequence[str]) -> Figure:
    caption = "Columns of metrics.jsonl that these runs have beyond the usual ones."
    return _grid("further_columns", "Other columns by round", caption, study, [_Panel(key, key) for key in keys])


def _grid(name: str, title: str, caption: str, study: Study, panels: Sequence[_Panel]) -> Figure:
    """A figure with a grid of panels, at most three in a row, and one legend."""
    columns = min(3, len(panels))
    rows, width = -(-len(panels) // columns), 3.8 * columns
    lines, _ = legend_shape([group.label for group in study.groups], width)
    canvas = new_canvas(width, 0.2 + 0.2 * lines + 2.7 * rows)
    grid = canvas.subplots(rows, columns, squeeze=False).ravel()
    data: list[dict[str, Any]] = []
    series = []
    for axes, panel in zip(grid, panels, strict=False):
        points, cells = _draw(axes, study, panel)
        series.append(points)
        data += cells
    for axes in grid[len(panels) :]:
        axes.set_visible(False)
    legend(canvas, next((axes for axes, points in zip(grid, series, strict=False) if points), grid[0]))
    hover = [hover_of(canvas, axes, points) for axes, points in zip(grid, series, strict=False)]
    return Figure(name, title, caption, canvas, data, hover, wide=True)


def _draw(axes: Axes, study: Study, panel: _Panel) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Draws one panel; returns (series for the tooltips, rows for the CSV)."""
    errors = column(f"{panel.key}_error") if _has(study, f"{panel.key}_error") else None
    series, data = draw_lines(axes, study.groups, rounds, column(panel.key), error_of=errors)
    label_axes(axes, "round", panel.label)
    cells = [{"column": panel.key, **point} for point in data]
    if not series:
        axes.text(0.5, 0.5, panel.empty, transform=axes.transAxes, ha="center", va="center")
    if panel.taken:
        cells += _draw_taken(axes, study, panel.taken)
    if cells:
        _scale(axes, [cell["mean"] for cell in cells], [cell[end] for cell in cells for end in ("low", "high")])
    return series, cells


def _draw_taken(axes: Axes, study: Study, key: str) -> list[dict[str, Any]]:
    """Draws the steps taken, dotted and without entries in the legend; returns rows for the CSV."""
    before = len(axes.get_lines())
    _, data = draw_lines(axes, study.groups, rounds, column(key))
    for line in axes.get_lines()[before:]:
        line.set(linestyle=":", marker="", label="_taken")
    axes.legend([Line2D([], [], color="#888888", linestyle=":", linewidth=1.7)], ["taken"], loc="best", fontsize=8)
    return [{"column": key, **point} for point in data]


def _scale(axes: Axes, values: Sequence[float], band: Sequence[float]) -> None:
    """Logarithmic scale; symlog (linear around zero) if there are values below zero, as unbiased estimates may be."""
    largest = max(map(abs, values))
    if min(values) > 0:
        axes.set_yscale("log")
        plain_ticks(axes.yaxis)
        low = max(min([*values, *band]), min(values) / 30)  # a band down to almost zero must not compress the rest
        axes.set_ylim(low / 1.6, max([*values, *band]) * 1.6)
    elif largest > 0 and not all(float(value).is_integer() for value in values):
        axes.set_yscale("symlog", linthresh=largest / 1000)


def _has(study: Study, key: str) -> bool:
    """Whether any run has a value in this column."""
    return any(value is not None for run in study.runs for value in run.column(key))
