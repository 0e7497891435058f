"""Bar charts: bytes of a round by kind, seconds of a round by phase, peak memory of the ranks."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Rectangle
from matplotlib.text import Annotation

from llcg_dist.report.figure import Figure, new_canvas, tag_series
from llcg_dist.report.groups import Group, Study
from llcg_dist.report.runs import Run
from llcg_dist.report.style import BYTE_KINDS, MEMORY_ROLES, PHASES

_PHASE_NAMES = {
    "local": "local steps",
    "exchange": "exchange",
    "correct": "correction",
    "evaluate": "judging the round before",
}


def bar_figures(study: Study) -> list[Figure]:
    """The three figures of bars: bytes, seconds and memory, a bar per group."""
    return [_bytes(study), _seconds(study), _memory(study)]


def _bytes(study: Study) -> Figure:
    columns = {key: f"MB {name}" for key, (name, _) in BYTE_KINDS.items()}
    data = [{"group": g.label} | {columns[key]: _mean(g, key) / 1e6 for key in BYTE_KINDS} for g in study.groups]
    canvas, axes = _bar_axes(len(study.groups))
    left = np.zeros(len(data))
    for key, (name, colour) in BYTE_KINDS.items():
        values = np.array([row[columns[key]] for row in data])
        axes.barh(range(len(data)), values, left=left, color=colour, label=name, height=0.7)
        left += values
    for i, total in enumerate(left):
        axes.annotate(_megabytes(total), (total, i), (4, 0), textcoords="offset points", va="center")
    _finish(canvas, axes, study.groups, "MB a round, all machines, both directions", ncols=5, columnspacing=1.2)
    caption = (
        "What crosses in a round, by kind, as the ledger counted it. Parameters are the model itself; features and "
        "gradients are what other methods exchange; control is a few numbers per machine."
    )
    return Figure("bytes_by_kind", "Bytes a round, by kind", caption, canvas, data)


def _seconds(study: Study) -> Figure:
    """A mean round as a timeline with two lanes: machines above, the server's evaluation of the last round below."""
    canvas, axes = _bar_axes(len(study.groups))
    data = []
    for i, group in enumerate(study.groups):
        time = {phase: _mean(group, f"seconds_{phase}") for phase in PHASES}
        total, parallel = _mean(group, "seconds_round"), all(map(_is_parallel, group.runs))
        busy = max(total - time["exchange"] - time["correct"], 0.0)
        beside = _mean(group, "seconds_correct_beside")
        server = beside + time["evaluate"]
        begin = 0.0 if parallel else min(server, busy)
        work = time["local"] if parallel or not time["local"] else busy - begin
        lanes = [("local", begin, work, -0.19), ("correct", 0.0, beside, 0.19)]
        lanes += [("evaluate", beside, time["evaluate"], 0.19)]
        lanes += [("exchange", busy, time["exchange"], 0.0), ("correct", busy + time["exchange"], time["correct"], 0.0)]
        for phase, start, length, lane in lanes:
            height = 0.34 if lane else 0.72
            axes.barh(i + lane, length, left=start, color=PHASES[phase], height=height)
        axes.annotate(_seconds_text(total), (total, i), (4, 0), textcoords="offset points", va="center")
        hidden = max(0.0, time["local"] + server - busy) if parallel else 0.0
        seconds = {f"seconds_{phase}": value for phase, value in time.items()} | {"seconds_correct_beside": beside}
        data.append({"group": group.label, **seconds, "seconds_round": total, "seconds_hidden": hidden})
    for phase, colour in PHASES.items():
        axes.barh(0, 0, color=colour, label=_PHASE_NAMES[phase])
    _finish(canvas, axes, study.groups, "seconds into a mean round", ncols=4)
    caption = (
        "A mean round from left to right: in the upper lane the slowest machine's local steps, in the lower lane the "
        "server, which meanwhile judges the round before (and with correction=beside takes its steps first): what lies "
        "below local steps costs no time, and a gap is a machine that waits for the server. Then the exchange and the "
        "correction. Runs in one process (loopback, "
        "single) do one after the other."
    )
    return Figure("seconds_by_phase", "Time of a round", caption, canvas, data)


def _memory(study: Study) -> Figure:
    canvas, axes = _bar_axes(len(study.groups))
    data: list[dict[str, Any]] = [{"group": group.label} for group in study.groups]
    for offset, (key, (name, colour)) in zip((-0.19, 0.19), MEMORY_ROLES.items(), strict=True):
        for i, group in enumerate(study.groups):
            recorded = [run.summary[key] for run in group.runs if run.summary[key] is not None]
            data[i][key] = value = float(np.mean(recorded)) if recorded else None
            if value is not None:
                axes.barh(i + offset, value, color=colour, height=0.36)
                text = f"{value:,.0f}"
                axes.annotate(text, (value, i + offset), (4, 0), textcoords="offset points", va="center", size=8)
        axes.barh(0, 0, color=colour, label=name)
    _finish(canvas, axes, study.groups, "peak memory (MB)", ncols=2, margin=0.1)
    caption = (
        "The most memory that the server and the largest machine had in use. The server holds the whole graph, a "
        "machine its part; imports alone take hundreds of MB. On loopback all of them are one process."
    )
    return Figure("memory", "Memory per rank", caption, canvas, data)


def _is_parallel(run: Run) -> bool:
    """Whether machines ran as separate processes: not on loopback, nor where rank 0 is alone and nothing is sent."""
    return run.settings.get("cluster.backend") != "loopback" and run.sent_megabytes()[-1] > 0


def _mean(group: Group, key: str) -> float:
    """The mean of a column over rounds and seeds; a round that has none counts as 0."""
    return float(np.mean([np.mean(run.numbers(key)) for run in group.runs]))


def _bar_axes(number: int) -> tuple[Canvas, Axes]:
    """A figure that is high enough for the horizontal bars of `number` groups."""
    canvas = new_canvas(height=max(3.6, 1.2 + (0.5 if number <= 10 else 0.32) * number))
    return canvas, canvas.subplots()


def _finish(
    canvas: Canvas, axes: Axes, groups: Sequence[Group], label: str, margin: float = 0.14, **legend: float
) -> None:
    """Labels the axes, the first group on top; leaves a margin for the numbers at the bars; adds the legend."""
    axes.margins(x=margin)
    axes.set_yticks(range(len(groups)), [group.label for group in groups])
    axes.invert_yaxis()
    axes.set_xlabel(label)
    axes.set_xlim(left=0)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", alpha=0.25, linewidth=0.6)
    axes.set_axisbelow(True)
    for patch in axes.patches:
        if isinstance(patch, Rectangle) and patch.get_width() > 0:
            tag_series(patch, round(patch.get_y() + patch.get_height() / 2))
    for text in axes.texts:
        if isinstance(text, Annotation):
            tag_series(text, round(text.xy[1]))
    for index, label_text in enumerate(axes.get_yticklabels()):
        tag_series(label_text, index)
    canvas.legend(loc="outside lower center", handlelength=1.2, **legend)


def _megabytes(value: float) -> str:
    return "nothing" if value == 0 else f"{value:.3g} MB"


def _seconds_text(value: float) -> str:
    return f"{value:.3f} s" if value < 1 else f"{value:.2f} s"
