"""Bars: what a round sends, where its time goes, what the ranks hold in memory."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from llcg_dist.report.figure import Figure, canvas
from llcg_dist.report.groups import Group, Study
from llcg_dist.report.runs import Run
from llcg_dist.report.style import KINDS, PHASES, ROLES

_PHASE_NAMES = {
    "local": "local steps",
    "exchange": "exchange",
    "correct": "correction",
    "evaluate": "judging the round before",
}


def bar_figures(study: Study) -> list[Figure]:
    return [_bytes(study), _seconds(study), _memory(study)]


def _bytes(study: Study) -> Figure:
    data = [{"group": g.label} | {key: _mean(g, key) for key in KINDS} for g in study.groups]
    drawn, axes = _bars(len(data))
    left = np.zeros(len(data))
    for key, (name, colour) in KINDS.items():
        values = np.array([row[key] for row in data]) / 1e6
        axes.barh(range(len(data)), values, left=left, color=colour, label=name, height=0.7)
        left += values
    for place, total in enumerate(left):
        axes.annotate(_megabytes(total), (total, place), (4, 0), textcoords="offset points", va="center")
    axes.margins(x=0.14)
    _dress(axes, study.groups, "MB a round, all machines, both directions")
    drawn.legend(loc="outside lower center", ncols=5, handlelength=1.2, columnspacing=1.2)
    caption = (
        "What crosses in a round, by kind, as the ledger counted it. Parameters are the model itself; features and "
        "gradients are what other methods exchange; control is a few numbers per machine."
    )
    return Figure("bytes_by_kind", "Bytes a round, by kind", caption, drawn, data)


def _seconds(study: Study) -> Figure:
    """A mean round as a time line of two lanes; evaluation of the round before lies beside the machines' work."""
    drawn, axes = _bars(len(study.groups))
    data = []
    for place, group in enumerate(study.groups):
        time = {phase: _mean(group, f"seconds_{phase}") for phase in PHASES}
        whole, parallel = _mean(group, "seconds_round"), all(map(_is_parallel, group.runs))
        busy = max(whole - time["exchange"] - time["correct"], 0.0)
        begin = 0.0 if parallel else min(time["evaluate"], busy)
        work = time["local"] if parallel or not time["local"] else busy - begin
        lanes = [("local", begin, work, -0.19), ("evaluate", 0.0, time["evaluate"], 0.19)]
        lanes += [("exchange", busy, time["exchange"], 0.0), ("correct", busy + time["exchange"], time["correct"], 0.0)]
        for phase, start, length, lane in lanes:
            height = 0.34 if lane else 0.72
            axes.barh(place + lane, length, left=start, color=PHASES[phase], height=height)
        axes.annotate(_seconds_text(whole), (whole, place), (4, 0), textcoords="offset points", va="center")
        hidden = max(0.0, time["local"] + time["evaluate"] - busy) if parallel else 0.0
        seconds = {f"seconds_{phase}": value for phase, value in time.items()}
        data.append({"group": group.label, **seconds, "seconds_round": whole, "seconds_hidden": hidden})
    for phase, colour in PHASES.items():
        axes.barh(0, 0, color=colour, label=_PHASE_NAMES[phase])
    axes.margins(x=0.14)
    _dress(axes, study.groups, "seconds into a mean round")
    drawn.legend(loc="outside lower center", ncols=4, handlelength=1.2)
    caption = (
        "A mean round from left to right: in the upper lane the slowest machine's local steps, in the lower lane the "
        "server, which meanwhile judges the round before: what lies below local steps costs no time, and a gap is a "
        "machine that waits for the server. Then the exchange and the correction. Runs in one process (loopback, "
        "single) do one after the other."
    )
    return Figure("seconds_by_phase", "Time of a round", caption, drawn, data)


def _memory(study: Study) -> Figure:
    drawn, axes = _bars(len(study.groups))
    data: list[dict[str, Any]] = [{"group": group.label} for group in study.groups]
    for offset, (key, (name, colour)) in zip((-0.19, 0.19), ROLES.items(), strict=True):
        for place, group in enumerate(study.groups):
            found = [run.summary[key] for run in group.runs if run.summary[key] is not None]
            data[place][key] = value = float(np.mean(found)) if found else None
            if value is not None:
                axes.barh(place + offset, value, color=colour, height=0.36)
                text = f"{value:,.0f}"
                axes.annotate(text, (value, place + offset), (4, 0), textcoords="offset points", va="center", size=8)
        axes.barh(0, 0, color=colour, label=name)
    axes.margins(x=0.1)
    _dress(axes, study.groups, "peak memory (MB)")
    drawn.legend(loc="outside lower center", ncols=2, handlelength=1.2)
    caption = (
        "The most memory that the server and the largest machine had in use. The server holds the whole graph, a "
        "machine its part; imports alone take hundreds of MB. On loopback all of them are one process."
    )
    return Figure("memory", "Memory per rank", caption, drawn, data)


def _is_parallel(run: Run) -> bool:
    """Machines are processes of their own: not on loopback, nor where rank 0 is all there is and nothing is sent."""
    return run.settings.get("cluster.backend") != "loopback" and run.sent_megabytes()[-1] > 0


def _mean(group: Group, key: str) -> float:
    """Over rounds and seeds."""
    return float(np.mean([np.mean(run.column(key)) for run in group.runs]))


def _bars(number: int) -> tuple[Any, Axes]:
    drawn = canvas(height=max(3.6, 1.2 + (0.5 if number <= 10 else 0.32) * number))
    return drawn, drawn.subplots()


def _dress(axes: Axes, groups: Sequence[Group], label: str) -> None:
    axes.set_yticks(range(len(groups)), [group.label for group in groups])
    axes.invert_yaxis()
    axes.set_xlabel(label)
    axes.set_xlim(left=0)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", alpha=0.25, linewidth=0.6)
    axes.set_axisbelow(True)


def _megabytes(value: float) -> str:
    return "nothing" if value == 0 else f"{value:.3g} MB"


def _seconds_text(value: float) -> str:
    return f"{1000 * value:.0f} ms" if value < 1 else f"{value:.2f} s"
