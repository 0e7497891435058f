"""The state of a run as lines of text, and as panels of a terminal."""

import shlex

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from llcg_dist.cli.watch.chart import bar, chart
from llcg_dist.cli.watch.state import RunState, recent_mean
from llcg_dist.records.columns import BYTES
from llcg_dist.records.console import percent, printable

_HEIGHT = 7
_MOST_PARTS = 12
"""Parts with a line of their own; of more, the slowest."""


def status_line(state: RunState) -> str:
    """Where the run is: rounds, scores, bytes, time."""
    if not state.rows:
        return f"waiting for the first round ({state.silent_seconds:.0f} s){_trouble(state)}"
    row, best = state.rows[-1], state.best
    pieces = [f"round {len(state.rows)}/{state.planned_rounds}", f"val {percent(row.get('val_score'))} %"]
    pieces += [f"best {percent(best['val_score'])} % (round {best['round']})"] if best else []
    pieces += [f"{state.megabytes():.2f} MB", f"{state.seconds():.0f} s"]
    if state.finished:
        return ", ".join([*pieces, "stopped early" if state.stopping else "finished"])
    if trouble := _trouble(state):
        return ", ".join(pieces) + trouble
    return ", ".join([*pieces, f"{state.seconds_left():.0f} s left"])


def _trouble(state: RunState) -> str:
    """Why no further round comes, and what to do; empty where all is well."""
    again = _how_to_go_on(state)
    if state.running is False:
        return f"; no process works on it: {again}"
    if state.is_silent:
        where = "stuck" if state.running else f"stopped (then {again}), or stuck"
        return f"; no round for {state.silent_seconds:.0f} s: {where}? See {state.path / 'logs'}"
    return ""


def _how_to_go_on(state: RunState) -> str:
    """The command of the last start; with the folder, where that was chosen by the job."""
    try:
        words = shlex.split(str(state.start.get("command", "")))
    except ValueError:  # quotes that do not close: not what a start has recorded
        words = []
    if words[:2] != ["llcg", "train"]:
        return "the command that started it goes on"
    names_folder = any(word.startswith("run_dir=") or word in ("-m", "--multirun") for word in words)
    return "go on with: " + shlex.join(words if names_folder else [*words, f"run_dir={state.path}"])


def plain_lines(state: RunState) -> list[str]:
    """The state without colours and frames, for a pipe or a file."""
    lines = [f"{state.path}: {state.title}", status_line(state)]
    if state.rows:
        lines.append("MB a round: " + ", ".join(f"{kind} {value:.3f}" for kind, value in _megabytes(state).items()))
        lines.append("seconds a round: " + ", ".join(f"{name} {value:.3f}" for name, value in state.phases().items()))
    if parts := _slowest_parts(state):
        lines.append("local seconds: " + ", ".join(f"part {part} {seconds:.3f}" for part, seconds in parts))
    lines += [f"slow: {state.slow()}"] if state.slow() else []
    lines += [f"early stop: {state.stopping}"] if state.stopping else []
    return lines + [f"warning: {text}" for text in state.warnings()]


def panels(state: RunState, width: int) -> RenderableType:
    """The state as rich draws it in a terminal of this width."""
    title = Text(printable(f"{state.path}  {state.title}"), style="bold")
    done = Text(bar(len(state.rows) / max(1, state.planned_rounds), width - 2).ljust(width - 2, "░"))
    colour = "green" if state.finished else "yellow" if state.is_silent or state.running is False else "cyan"
    items: list[RenderableType] = [title, done, Text(printable(status_line(state)), style=colour)]
    if state.rows:
        charts = _columns(2)
        half = (width - 6) // 2
        charts.add_row(
            _curve("validation score (%)", [100 * value for value in state.values("val_score")], half),
            _curve("training loss", state.values("train_loss"), half),
        )
        tables = _columns(3)
        tables.add_row(
            _bars("MB a round", _megabytes(state)), _bars("seconds a round", state.phases()), _part_bars(state)
        )
        items += [charts, tables]
    items += [Text(f"slow: {state.slow()}", style="yellow")] if state.slow() else []
    items += [Text(printable(f"early stop: {state.stopping}"))] if state.stopping else []
    return Group(*items, *(Text(printable(f"warning: {text}"), style="yellow") for text in state.warnings()))


def _columns(number: int) -> Table:
    """A row of panels of the same width."""
    grid = Table.grid(expand=True, padding=(0, 1))
    for _ in range(number):
        grid.add_column(ratio=1)
    return grid


def _curve(name: str, values: list[float], width: int) -> Panel:
    """A chart between its lowest and highest value, with the last one in the title."""
    if not values:
        return Panel("not evaluated yet", title=name)
    lines = chart(values, width - 14, _HEIGHT)
    labels = [f"{max(values):9.4g}", *[" " * 9] * (_HEIGHT - 2), f"{min(values):9.4g}"]
    text = "\n".join(f"{label} {line}" for label, line in zip(labels, lines, strict=True))
    return Panel(Text(text, no_wrap=True), title=f"{name}: {values[-1]:.4g}")


def _bars(name: str, values: dict[str, float]) -> Panel:
    largest = max(values.values(), default=0.0) or 1.0
    table = Table.grid(padding=(0, 1))
    for key, value in values.items():
        table.add_row(key, f"{value:.3f}", bar(value / largest, 10))
    return Panel(table, title=name)


def _part_bars(state: RunState) -> Panel:
    """The local steps of every part: who the others wait for."""
    return _bars("local seconds", {f"part {part}": seconds for part, seconds in _slowest_parts(state)})


def _slowest_parts(state: RunState) -> list[tuple[int, float]]:
    """(part, seconds) in the order of parts; of many parts the slowest, slowest first."""
    parts = list(enumerate(state.part_seconds()))
    return parts if len(parts) <= _MOST_PARTS else sorted(parts, key=lambda part: -part[1])[:_MOST_PARTS]


def _megabytes(state: RunState) -> dict[str, float]:
    """{kind: megabytes a round} of what the last rounds sent, and their sum."""
    kinds = {key: recent_mean(state.rows, key) / 1e6 for key in BYTES}
    names = {key: key.replace("bytes_", "").replace("_bytes", "") for key in BYTES}
    return {names[key]: value for key, value in kinds.items() if value > 0} | {"sum": sum(kinds.values())}
