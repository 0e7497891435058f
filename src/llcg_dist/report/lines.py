"""Lines of groups: a mean with its band, in the method's colour, and the legend below them."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from llcg_dist.report.groups import Group
from llcg_dist.report.runs import Run, is_number
from llcg_dist.report.style import line_style

Values = Callable[[Run], list[Any]]
"""A number of every round, or None."""


def rounds(run: Run) -> list[Any]:
    return run.column("round")


def column(key: str) -> Values:
    return lambda run: run.column(key)


def draw_lines(
    axes: Axes, groups: Sequence[Group], x_of: Values, y_of: Values, scale: float = 1, error_of: Values | None = None
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Draws every group; returns its points for the pointer and for the CSV.

    The band reaches from the lowest seed to the highest, and by the standard error of each further, where there is one.
    """
    series, data = [], []
    log = axes.get_xscale() == "log"
    for group, style in zip(groups, styles(groups), strict=True):
        x, values = _points(group, x_of, y_of, scale)
        if len(x) == 0:
            continue
        mean = np.nanmean(values, axis=0)
        if log and x[-1] <= 0:  # sends nothing: no place on a logarithmic axis
            axes.axhline(mean[-1], color=style["color"], linestyle=style["linestyle"], linewidth=1, label=group.label)
            continue
        axes.plot(x, mean, label=group.label, markevery=max(1, len(x) // 10), **style)
        errors = _errors(group, y_of, error_of, scale) if error_of else np.zeros_like(values)
        low, high = np.nanmin(values - errors, axis=0), np.nanmax(values + errors, axis=0)
        if len(group.runs) > 1 or error_of:
            axes.fill_between(x, low, high, color=style["color"], alpha=0.15, linewidth=0)
        points = {"x": [float(f"{v:.6g}") for v in x], "y": [float(f"{v:.6g}") for v in mean]}
        series.append({"label": group.label, "color": style["color"], **points})
        for place, value in enumerate(x):
            spread = {"low": low[place] / scale, "high": high[place] / scale, "seeds": len(group.runs)}
            data.append({"group": group.label, "x": value, "mean": mean[place] / scale, **spread})
    return series, data


def styles(groups: Sequence[Group]) -> list[dict[str, Any]]:
    """The method's colour; of several groups its shade follows the first setting that differs, the dash the others."""
    found = []
    for group in groups:
        own = [other for other in groups if other.method == group.method]
        varied = [key for key in group.keys if len({str(other.keys[key]) for other in own}) > 1]
        first = list(dict.fromkeys(_values(other, varied[:1]) for other in own))
        rest = list(dict.fromkeys(_values(other, varied[1:]) for other in own))
        place = first.index(_values(group, varied[:1]))
        dash = rest.index(_values(group, varied[1:])) if len(rest) > 1 else place
        found.append(line_style(group.method, place / (len(first) - 1) if len(first) > 1 else None, dash))
    return found


def _values(group: Group, keys: Sequence[str]) -> tuple[str, ...]:
    return tuple(str(group.keys[key]) for key in keys)


def _points(group: Group, x_of: Values, y_of: Values, scale: float) -> tuple[Any, Any]:
    """Mean x, and the values of every seed, of the rounds that all of them have and some of them judged."""
    values = _table(group, y_of) * scale
    judged = ~np.isnan(values).all(axis=0)
    return _table(group, x_of).mean(axis=0)[judged], values[:, judged]


def _errors(group: Group, y_of: Values, error_of: Values, scale: float) -> Any:
    """Of the points; none where none is recorded."""
    judged = ~np.isnan(_table(group, y_of)).all(axis=0)
    return np.nan_to_num(_table(group, error_of)[:, judged]) * scale


def _table(group: Group, values_of: Values) -> Any:
    """[seeds, rounds that all of them have]; NaN where there is no number."""
    length = min(len(run.rows) for run in group.runs)
    return np.array([[v if is_number(v) else np.nan for v in values_of(run)[:length]] for run in group.runs], float)


def dress(axes: Axes, x_label: str, y_label: str) -> None:
    axes.set(xlabel=x_label, ylabel=y_label)
    axes.grid(alpha=0.25, linewidth=0.6)
    if x_label == "round":
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def plain_ticks(axis: Axis) -> None:
    """1, 2, 5, 10 on a logarithmic axis, which may be shorter than a power of ten."""
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.set_minor_locator(NullLocator())


def legend(drawn: Canvas, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        _, columns = legend_shape(labels, drawn.get_size_inches()[0])
        drawn.legend(handles, labels, loc="outside lower center", ncols=columns, handlelength=3.2)


def legend_shape(labels: Sequence[str], width: float) -> tuple[int, int]:
    """Lines and columns of a legend that fits into so many inches, no line much shorter than the others."""
    fitting = max(1, int(12 * width / (max(map(len, labels)) + 7)))
    lines = -(-len(labels) // fitting)
    return lines, -(-len(labels) // lines)
