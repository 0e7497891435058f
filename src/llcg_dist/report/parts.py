"""Figures of partitions: label shares of every part, and the edges between parts."""

import json
from typing import Any, cast

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from llcg_dist.report.figure import Figure, new_canvas
from llcg_dist.report.groups import Study

_MAX_CLASSES = 16
"""Classes with a colour of their own; the rarer ones share grey."""
_MAX_PARTS_WITH_NUMBERS = 10
"""Up to this number of parts the cells of the edge matrix show numbers."""
_MAX_FIGURES = 6


def partition_figures(study: Study) -> list[Figure]:
    """One figure for each distinct partition among the runs, with the names of the classes."""
    distinct = {json.dumps(run.partition): run.partition for run in study.runs if run.partition}
    partitions = list(distinct.values())[:_MAX_FIGURES]
    return [_figure(partition, number, len(partitions)) for number, partition in enumerate(partitions, start=1)]


def _figure(partition: dict[str, Any], number: int, count: int) -> Figure:
    canvas = new_canvas(11.4, max(3.4, 1.9 + 0.28 * len(partition["parts"])))
    labels, between = canvas.subplots(1, 2, width_ratios=[1.5, 1])
    names = _class_names(partition)
    classes = _draw_labels(labels, partition, names)
    _draw_between(between, np.array(partition["edges_between_parts"], float))
    cut, edges, name = partition["cut_edges"], partition["num_edges"], partition["partitioner"]
    between.set_title(f"{100 * cut / max(1, edges):.1f} % of {edges:,} edges are cut")
    labels.set_title(f"labels of the nodes, {classes}")
    data = [
        {"part": p, "nodes": part["nodes"], "train_nodes": part["train_nodes"]}
        | {f"label_{label}": count for label, count in zip(names, part["label_counts"], strict=False)}
        | {f"edge_ends_in_part_{q}": count for q, count in enumerate(partition["edges_between_parts"][p])}
        for p, part in enumerate(partition["parts"])
    ]
    caption = (
        "Left: each bar is a part, each colour a class; parts of different colours see different data. Right: where "
        "the neighbours of a part's nodes lie; off the diagonal are the cut edges, which machines cannot see and the "
        "server's correction restores."
    )
    title = f"The parts: {name}, {partition['num_parts']} parts, seed {partition['seed']}"
    return Figure("partition" if count == 1 else f"partition_{number}", title, caption, canvas, data, wide=True)


def _class_names(partition: dict[str, Any]) -> list[str]:
    """The names of the classes, as many as there are counts; numbers where there are none."""
    width = max(len(part["label_counts"]) for part in partition["parts"])
    names = partition.get("class_names", [])
    return [str(names[i]) if i < len(names) else str(i) for i in range(width)]


def _draw_labels(axes: Axes, partition: dict[str, Any], names: list[str]) -> str:
    """Draws the label shares of every part as stacked bars; returns the number of classes shown, in words."""
    parts = partition["parts"]
    width = len(names)
    counts = np.array([part["label_counts"] + [0] * (width - len(part["label_counts"])) for part in parts], float)
    order = np.argsort(-counts.sum(axis=0), kind="stable")
    shown, rest = np.sort(order[:_MAX_CLASSES]), order[_MAX_CLASSES:]
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    colours = mpl.colormaps["turbo"](np.linspace(0.06, 0.94, max(2, len(shown))))
    left = np.zeros(len(parts))
    columns = [(shares[:, label], colours[i], names[label]) for i, label in enumerate(shown)]
    columns += [(shares[:, rest].sum(axis=1), "#BBBBBB", "rarer ones")] if len(rest) else []
    style: dict[str, Any] = {"height": 0.8, "edgecolor": "white", "linewidth": 0.4}
    for share, colour, name in columns:
        axes.barh(range(len(parts)), 100 * share, left=left, color=colour, label=_short(name), **style)
        left += 100 * share
    cast(Canvas, axes.get_figure()).legend(loc="outside lower center", ncols=8, handlelength=1.0, fontsize=8)
    part_names = [
        f"part {p}: {part['nodes']:,} nodes, {part['train_nodes']:,} to train on" for p, part in enumerate(parts)
    ]
    axes.set_yticks(range(len(parts)), part_names)
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0)
    axes.set(xlabel="share of the part's labels (%)", xlim=(0, 100))
    return f"{len(shown)} classes" + (f" and {len(rest)} rarer ones in grey" if len(rest) else "")


def _short(name: str) -> str:
    return name if len(name) <= 18 else f"{name[:17]}…"


def _draw_between(axes: Axes, counts: Any) -> None:
    """Draws the matrix [P, P] of edges between parts, as shares of each row."""
    shares = 100 * counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    axes.imshow(shares, cmap="cividis", vmin=0, vmax=100)
    if len(shares) <= _MAX_PARTS_WITH_NUMBERS:
        for (row, column), share in np.ndenumerate(shares):
            colour = "black" if share > 55 else "white"
            axes.text(column, row, f"{share:.0f}", ha="center", va="center", color=colour, size=8)
    step = max(1, len(shares) // 8)
    axes.set(xlabel="… in part (%)", ylabel="neighbours of part …")
    axes.set_xticks(range(0, len(shares), step))
    axes.set_yticks(range(0, len(shares), step))
    axes.spines[:].set_visible(False)
