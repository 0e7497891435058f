"""Who took part: a strip of rounds for every run that went on without one of its machines."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import Patch

from llcg_dist.report.figure import WIDTH, Figure, new_canvas
from llcg_dist.report.groups import Study
from llcg_dist.report.runs import Run
from llcg_dist.report.style import INK

_TOOK_PART, _STOOD_IN, _LATE, _ABSENT = "took part", "stood in for by the server", "late", "absent"
_STATES = {_TOOK_PART: "#d9dee4", _STOOD_IN: "#e0a030", _LATE: "#8e6bb0", _ABSENT: "#c0392b"}


def membership_figures(study: Study) -> list[Figure]:
    """One strip for each run that a machine was absent from, or late in; none where all runs had all of theirs."""
    runs = [run for group in study.groups for run in group.runs if any(_absent(row) or _late(row) for row in run.rows)]
    return [_figure(run, number) for number, run in enumerate(runs)]


def _figure(run: Run, number: int) -> Figure:
    parts = int(run.summary["num_machines"])
    canvas = new_canvas(WIDTH, 1.1 + 0.16 * parts)
    axes = canvas.subplots()
    for part in range(parts):
        _draw(axes, run, part)
    axes.set(yticks=range(parts), ylim=(parts - 0.4, -0.6), xlabel="round", ylabel="part")
    axes.grid(visible=False)
    handles = [Patch(color=colour, label=state) for state, colour in _STATES.items()]
    axes.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4, frameon=False, labelcolor=INK)
    cells = [(row, part) for row in run.rows for part in range(parts)]
    data = [{"round": row["round"], "part": part, "state": _state(row, part)} for row, part in cells]
    caption = (
        f"{run.path.name}: which parts had a machine in which round (cluster.on_loss=go_on). Where one is absent, or "
        "late, the others' models are averaged, with one of the server's in its place where that stands in."
    )
    return Figure(f"members_{number}", "Machines by round", caption, canvas, data)


def _draw(axes: Axes, run: Run, part: int) -> None:
    for state, colour in _STATES.items():
        spans = [(row["round"] - 0.5, 1.0) for row in run.rows if _state(row, part) == state]
        axes.broken_barh(spans, (part - 0.4, 0.8), color=colour, linewidth=0)


def _state(row: dict[str, Any], part: int) -> str:
    if part not in _absent(row) and str(part) not in _late(row):
        return _TOOK_PART
    if part in _list(row, "stood_in"):
        return _STOOD_IN
    return _ABSENT if part in _absent(row) else _LATE


def _absent(row: dict[str, Any]) -> list[Any]:
    return _list(row, "absent")


def _late(row: dict[str, Any]) -> dict[str, Any]:
    found = row.get("late")
    return found if isinstance(found, dict) else {}


def _list(row: dict[str, Any], column: str) -> list[Any]:
    """The file may be a stranger's: what is no list has no parts."""
    found = row.get(column)
    return found if isinstance(found, list) else []
