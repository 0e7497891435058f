"""`llcg watch RUN [--once] [--every=SECONDS]`: parses, looks at the run's files again and again, and shows them."""

import sys
import time
from collections.abc import Sequence
from pathlib import Path

from llcg_dist.cli.watch.state import RunState, read_state
from llcg_dist.errors import UserError
from llcg_dist.records.console import say

_EVERY = "--every="


def watch(arguments: Sequence[str]) -> int:
    """Shows the run until it is finished; returns the exit code, 130 after Ctrl-C."""
    path, once, every = _parse(arguments)
    try:
        if once or not sys.stdout.isatty():
            return _print_state(read_state(path)) if once else _follow(path, every)
        return _live(path, every)
    except KeyboardInterrupt:
        return 130


def _parse(arguments: Sequence[str]) -> tuple[Path, bool, float]:
    """(run directory, --once, --every)."""
    every = 2.0
    options = [argument for argument in arguments if argument.startswith("--")]
    paths = [argument for argument in arguments if not argument.startswith("--")]
    for option in options:
        if option.startswith(_EVERY):
            try:
                every = float(option.removeprefix(_EVERY))
            except ValueError:
                every = 0.0
            if not 0 < every <= 3600:
                raise UserError(f"watch: {option}: must be a number of seconds from above 0 to 3600")
        elif option != "--once":
            raise UserError(f"watch: {option}: the options are --once and --every=SECONDS")
    if len(paths) != 1:
        raise UserError("watch: name one run directory (llcg watch --help)")
    return Path(paths[0].removeprefix("run_dir=")), "--once" in options, every


def _print_state(state: RunState) -> int:
    """The state once: with colours on a terminal, as plain lines elsewhere."""
    from llcg_dist.cli.watch.view import panels, plain_lines

    if sys.stdout.isatty():
        from rich.console import Console

        console = Console()
        console.print(panels(state, console.width))
    else:
        say("\n".join(plain_lines(state)))
    return 0


def _follow(path: Path, every: float) -> int:
    """Plain lines: one for each look at which there are new rounds, and the whole state at the end."""
    from llcg_dist.cli.watch.view import plain_lines, status_line

    shown = -1
    while not (state := read_state(path)).finished:
        if len(state.rows) != shown:
            say(status_line(state))
            shown = len(state.rows)
        time.sleep(every)
    say("\n".join(plain_lines(state)))
    return 0


def _live(path: Path, every: float) -> int:
    """Panels that are drawn anew with every look."""
    from rich.console import Console
    from rich.live import Live

    from llcg_dist.cli.watch.view import panels

    console, state = Console(), read_state(path)
    with Live(panels(state, console.width), console=console, auto_refresh=False) as live:
        while not state.finished:
            time.sleep(every)
            state = read_state(path)
            live.update(panels(state, console.width), refresh=True)
    return 0
