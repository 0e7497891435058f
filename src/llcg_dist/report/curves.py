"""Lines: scores and losses by round, by bytes, by time, and whatever else the rows hold."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from llcg_dist.report.figure import WIDTH, Figure, canvas, hover_of
from llcg_dist.report.groups import Group, Study
from llcg_dist.report.runs import Run
from llcg_dist.report.style import line_style

_EXPLAINED = {
    "kappa_a_sq": ("kappa_A²", "what dropping the cut edges does to a machine's gradient"),
    "kappa_x_sq": ("kappa_X²", "how far a part's gradient is from the whole graph's"),
    "kappa_sq": ("kappa²", "both together"),
    "sigma_bias_sq": ("sigma_bias²", "the bias of sampling neighbours"),
    "sigma_var_sq": ("sigma_var²", "the spread of mini-batch gradients"),
    "sigma_global_sq": ("sigma_global²", "the spread of the server's mini-batch gradients"),
    "g_local": ("G_local", "squared norm of the machines' mean gradient"),
    "g_global": ("G_global", "squared norm of the server's gradient"),
}
"""Columns that only some runs record; others are drawn under their own name."""

X = Callable[[Run], list[Any]]


def _rounds(run: Run) -> list[Any]:
    return run.column("round")


def curve_figures(study: Study) -> list[Figure]:
    score = f"validation {study.metric} (%)"
    band = "Lines are means over seeds, bands reach from the lowest to the highest seed."
    figures = [
        _figure(
            "score_by_round", "Validation score by round", study, ("round", _rounds), (score, "val_score", 100),
            "How good the model is after each round of communication, on the whole graph, cut edges included. " + band,
        ),
        _figure(
            "loss_by_round", "Training loss by round", study, ("round", _rounds), ("training loss", "train_loss", 1),
            "The loss over all training nodes on the whole graph: what the methods really minimise. " + band,
        ),
        _figure(
            "score_by_bytes", "Validation score by bytes sent", study,
            ("MB sent, all machines, both directions", Run.sent_megabytes), (score, "val_score", 100),
            "The further left a curve rises, the less it had to send for its score (logarithmic axis). "
            "A level line is the last score of a method that sends nothing.",
            log=True,
        ),
        _figure(
            "score_by_time", "Validation score by time", study, ("seconds of training", Run.seconds),
            (score, "val_score", 100),
            "When the model of each round was ready, starting up not counted. Times of different hosts, or of "
            "machines that share one process (loopback), are not to be compared.",
        ),
        _figure(
            "steps_by_round", "Local steps by round", study, ("round", _rounds), ("local steps", "local_steps", 1),
            "How many steps a machine takes on its own before it sends its model: K of them, growing with rho. "
            "The more, the fewer rounds, and the further the machines drift apart between two of them.",
        ),
    ]  # fmt: skip
    return [*figures, *_further(study)]


def overview(study: Study) -> Canvas:
    """Score and loss by round side by side, for READMEs and slides."""
    drawn = canvas(11, 4.2)
    scores, losses = drawn.subplots(1, 2)
    _lines(scores, study.groups, _rounds, "val_score", 100)
    _lines(losses, study.groups, _rounds, "train_loss", 1)
    _dress(scores, "round", f"validation {study.metric} (%)")
    _dress(losses, "round", "training loss")
    for axes in (scores, losses):
        axes.set_title("whole graph, after each round")
    _legend(drawn, scores)
    return drawn


def _figure(
    name: str, title: str, study: Study, x: tuple[str, X], y: tuple[str, str, float], caption: str, log: bool = False
) -> Figure:
    (x_label, x_of), (y_label, key, scale) = x, y
    lines, _ = _legend_shape([group.label for group in study.groups], WIDTH)
    drawn = canvas(height=3.4 + 0.2 * lines)
    axes = drawn.subplots()
    if log:
        axes.set_xscale("log")
        plain_ticks(axes.xaxis)
    series, data = _lines(axes, study.groups, x_of, key, scale)
    _dress(axes, x_label, y_label)
    _legend(drawn, axes)
    return Figure(name, title, caption, drawn, data, [hover_of(drawn, axes, series)])


def _further(study: Study) -> list[Figure]:
    """A small picture for every column beyond the usual ones."""
    keys = sorted({key for run in study.runs for key in run.further_columns()})
    if not keys:
        return []
    columns = min(3, len(keys))
    rows, width = -(-len(keys) // columns), 3.8 * columns
    lines, _ = _legend_shape([group.label for group in study.groups], width)
    drawn = canvas(width, 0.2 + 0.2 * lines + 2.7 * rows)
    grid = drawn.subplots(rows, columns, squeeze=False).ravel()
    data, panels, told = [], [], []
    for axes, key in zip(grid, keys, strict=False):
        series, points = _lines(axes, study.groups, _rounds, key, 1)
        name, meaning = _EXPLAINED.get(key, (key, ""))
        drawn_values = [value for line in series for value in line["y"]]
        _dress(axes, "round", name)
        if min(drawn_values, default=0) > 0:
            axes.set_yscale("log")
            plain_ticks(axes.yaxis)
            axes.set_ylim(min(drawn_values) / 1.6, max(drawn_values) * 1.6)
        data += [{"column": key, **point} for point in points]
        told += [f"{name} is {meaning}"] if meaning else []
        panels.append((axes, series))
    for axes in grid[len(keys) :]:
        axes.set_visible(False)
    _legend(drawn, grid[0])
    hover = [hover_of(drawn, axes, series) for axes, series in panels]
    caption = "Columns that these runs record beyond the usual ones. " + "; ".join(told) + ("." if told else "")
    return [Figure("diagnostics", "Diagnostics by round", caption, drawn, data, hover, wide=True)]


def _lines(
    axes: Axes, groups: Sequence[Group], x_of: X, key: str, scale: float
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Draws every group; returns its points for the pointer and for the CSV."""
    series, data = [], []
    log = axes.get_xscale() == "log"
    for group, style in zip(groups, styles(groups), strict=True):
        x, values = _points(group, x_of, key, scale)
        if len(x) == 0:
            continue
        mean = np.nanmean(values, axis=0)
        if log and x[-1] <= 0:  # sends nothing: no place on a logarithmic axis
            axes.axhline(mean[-1], color=style["color"], linestyle=style["linestyle"], linewidth=1, label=group.label)
            continue
        axes.plot(x, mean, label=group.label, markevery=max(1, len(x) // 10), **style)
        low, high = np.nanmin(values, axis=0), np.nanmax(values, axis=0)
        if len(group.runs) > 1:
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


def _points(group: Group, x_of: X, key: str, scale: float) -> tuple[Any, Any]:
    """Mean x, and the values of every seed, of the rounds that all of them have and some of them judged."""
    length = min(len(run.rows) for run in group.runs)
    columns = [[np.nan if value is None else value for value in run.column(key)[:length]] for run in group.runs]
    values = np.array(columns, float) * scale
    judged = ~np.isnan(values).all(axis=0)
    x = np.mean([x_of(run)[:length] for run in group.runs], axis=0)
    return x[judged], values[:, judged]


def _dress(axes: Axes, x_label: str, y_label: str) -> None:
    axes.set(xlabel=x_label, ylabel=y_label)
    axes.grid(alpha=0.25, linewidth=0.6)
    if x_label == "round":
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def plain_ticks(axis: Axis) -> None:
    """1, 2, 5, 10 on a logarithmic axis, which may be shorter than a power of ten."""
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.set_minor_locator(NullLocator())


def _legend(drawn: Canvas, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        _, columns = _legend_shape(labels, drawn.get_size_inches()[0])
        drawn.legend(handles, labels, loc="outside lower center", ncols=columns, handlelength=3.2)


def _legend_shape(labels: Sequence[str], width: float) -> tuple[int, int]:
    """Lines and columns of a legend that fits into so many inches, no line much shorter than the others."""
    fitting = max(1, int(12 * width / (max(map(len, labels)) + 7)))
    lines = -(-len(labels) // fitting)
    return lines, -(-len(labels) // lines)
