"""Line plots of groups of runs: the mean over seeds with a band, in the method's colour, and a legend below."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from llcg_dist.records.reading import is_number
from llcg_dist.report.figure import series_of, tag_series
from llcg_dist.report.groups import Group
from llcg_dist.report.runs import Run
from llcg_dist.report.style import line_style, shade_of

Values = Callable[[Run], list[Any]]
"""Run -> a value per round; None where there is none."""


def rounds(run: Run) -> list[Any]:
    """The numbers of the rounds, 1..R."""
    return run.column("round")


def column(key: str) -> Values:
    """The values of one column of metrics.jsonl."""
    return lambda run: run.column(key)


def draw_lines(
    axes: Axes, groups: Sequence[Group], x_of: Values, y_of: Values, scale: float = 1, error_of: Values | None = None
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Draws a line per group; returns (series for the page's tooltips, rows for the CSV).

    The band reaches from the lowest seed to the highest, extended by their standard errors if `error_of` gives them.
    """
    series, data = [], []
    log = axes.get_xscale() == "log"
    for index, (group, style) in enumerate(zip(groups, styles(groups), strict=True)):
        x, values = _points(group, x_of, y_of, scale)
        if len(x) == 0:
            continue
        mean = np.nanmean(values, axis=0)
        if log and x[-1] <= 0:  # a method that sends nothing has no place on a logarithmic axis of bytes
            level = {"color": style["color"], "linestyle": style["linestyle"], "linewidth": 1}
            tag_series(axes.axhline(mean[-1], label=group.label, **level), index)
            continue
        (line,) = axes.plot(x, mean, label=group.label, markevery=max(1, len(x) // 10), **style)
        tag_series(line, index)
        errors = _errors(group, y_of, error_of, scale) if error_of else np.zeros_like(values)
        low, high = np.nanmin(values - errors, axis=0), np.nanmax(values + errors, axis=0)
        if len(group.runs) > 1 or error_of:
            tag_series(axes.fill_between(x, low, high, color=style["color"], alpha=0.15, linewidth=0), index)
        points = {"x": [float(f"{v:.6g}") for v in x], "y": [float(f"{v:.6g}") for v in mean]}
        series.append({"series": index, "label": group.label, "color": style["color"], **points})
        for i, value in enumerate(x):
            spread = {"low": low[i], "high": high[i], "seeds": len(group.runs)}
            data.append({"group": group.label, "x": value, "mean": mean[i], **spread})
    return series, data


def styles(groups: Sequence[Group]) -> list[dict[str, Any]]:
    """Line styles: the colour shows the method; between groups of one method the shade shows the first differing
    setting, and the dash the combination of the others."""
    group_styles = []
    for group in groups:
        same_method = [other for other in groups if other.method == group.method]
        varied = [key for key in group.keys if len({str(other.keys[key]) for other in same_method}) > 1]
        first = list(dict.fromkeys(_values(other, varied[:1]) for other in same_method))
        rest = list(dict.fromkeys(_values(other, varied[1:]) for other in same_method))
        index = first.index(_values(group, varied[:1]))
        dash = rest.index(_values(group, varied[1:])) if len(rest) > 1 else index
        style = line_style(group.method, shade_of(index, len(first)), dash)
        group_styles.append(style if group.finished else style | {"linestyle": ":"})
    return group_styles


def _values(group: Group, keys: Sequence[str]) -> tuple[str, ...]:
    return tuple(str(group.keys[key]) for key in keys)


def _points(group: Group, x_of: Values, y_of: Values, scale: float) -> tuple[Any, Any]:
    """(mean x [rounds], values [seeds, rounds]) of the rounds that all seeds have and at least one has a value for."""
    values = _table(group, y_of) * scale
    has_value = ~np.isnan(values).all(axis=0)
    return _table(group, x_of).mean(axis=0)[has_value], values[:, has_value]


def _errors(group: Group, y_of: Values, error_of: Values, scale: float) -> Any:
    """[seeds, rounds] standard errors of the values of _points; 0 where none is recorded."""
    has_value = ~np.isnan(_table(group, y_of)).all(axis=0)
    return np.nan_to_num(_table(group, error_of)[:, has_value]) * scale


def _table(group: Group, values_of: Values) -> Any:
    """[seeds, rounds] over the rounds that all seeds have; NaN where there is no number."""
    length = min(len(run.rows) for run in group.runs)
    return np.array([[v if is_number(v) else np.nan for v in values_of(run)[:length]] for run in group.runs], float)


def label_axes(axes: Axes, x_label: str, y_label: str) -> None:
    """Sets labels and a grid; rounds get integer ticks."""
    axes.set(xlabel=x_label, ylabel=y_label)
    axes.grid(alpha=0.25, linewidth=0.6)
    if x_label == "round":
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def plain_ticks(axis: Axis) -> None:
    """Ticks 1, 2, 5, 10 on a logarithmic axis, so that one shorter than a power of ten has ticks too."""
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.set_minor_locator(NullLocator())


def legend(canvas: Canvas, axes: Axes) -> None:
    """Draws the legend of these axes below the figure."""
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        _, columns = legend_shape(labels, canvas.get_size_inches()[0])
        drawn = canvas.legend(handles, labels, loc="outside lower center", ncols=columns, handlelength=3.2)
        for handle, *entry in zip(handles, drawn.legend_handles, drawn.get_texts(), strict=True):
            for artist in entry:
                if artist is not None and (index := series_of(handle)) is not None:
                    artist.set_gid(f"legend-{index}")


def legend_shape(labels: Sequence[str], width: float) -> tuple[int, int]:
    """(lines, columns) of a legend that fits into `width` inches, with the labels spread evenly over the lines."""
    fitting = max(1, int(12 * width / (max(map(len, labels)) + 7)))
    lines = -(-len(labels) // fitting)
    return lines, -(-len(labels) // lines)
