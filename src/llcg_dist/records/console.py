"""Console output: a live progress line on a terminal, a line per round elsewhere, a closing table, one-line errors."""

import contextlib
import re
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from llcg_dist.config.schema import Config
from llcg_dist.records.columns import sent_bytes
from llcg_dist.training.privacy import privacy_line

ERROR_PREFIX = "llcg: error: "
"""What every line about an error begins with."""


_CONTROL = re.compile(r"\x1b(?!\[\d{0,2}m)|[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f]")
"""Characters that a terminal obeys, but for line breaks, tabs and colours."""


def printable(text: str) -> str:
    """The text with characters that a terminal would obey spelled out: it may come from a file of somebody else's."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def say(line: str) -> None:
    """Prints a line to stdout."""
    print(printable(line), flush=True)


def print_error(message: str) -> None:
    """Prints the message to stderr, as one line that begins with `llcg: error:`."""
    one_line = " ".join(message.split())
    with contextlib.suppress(OSError):  # a log on a full disk, a closed terminal: the exit code still says it
        print(f"{ERROR_PREFIX}{printable(one_line)}", file=sys.stderr, flush=True)


def end_progress_line() -> None:
    """Begins a new line on a terminal, where a progress line or the ^C of an interrupt may stand in the present one."""
    if sys.stdout.isatty():
        print(flush=True)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A text table with columns as wide as their widest cell, the first column left-aligned, the others right."""
    cells = [list(header), *[list(row) for row in rows]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]

    def line(row: Sequence[str]) -> str:
        numbers = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        return "  ".join([row[0].ljust(widths[0]), *numbers]).rstrip()

    return "\n".join([line(cells[0]), "  ".join("-" * width for width in widths), *map(line, cells[1:])])


class Progress:
    """The progress of a run on the console: rounds done, validation score, bytes sent, time left, warnings."""

    def __init__(self, config: Config, start_round: int = 0, earlier: Sequence[dict[str, Any]] = ()) -> None:
        """`start_round`: the round that the run goes on after; `earlier`: the rows that it does not record again."""
        self._name, self._rounds, self._start = config.algorithm.label, config.num_rounds, start_round
        if start_round:
            say(f"going on after round {start_round}")
        self._machines, self._live = config.cluster.num_machines, sys.stdout.isatty()
        self._started = time.monotonic()
        self._best = max((row["val_score"] for row in earlier if row["val_score"] is not None), default=float("-inf"))
        self._bytes = sum(map(sent_bytes, earlier))

    def round(self, row: dict[str, Any]) -> None:
        """Shows a round, given its row of metrics.jsonl."""
        done = row["round"]
        self._bytes += sent_bytes(row)
        elapsed = time.monotonic() - self._started
        left = elapsed / max(1, done - self._start) * (self._rounds - done)
        pieces = [f"{self._name} round {done}/{self._rounds}"]
        if row["val_score"] is not None:
            self._best = max(self._best, row["val_score"])
            pieces += [f"val {percent(row['val_score'])} % (best {percent(self._best)})"]
            pieces += [f"loss {row['train_loss'] or 0:.4f}"]
        pieces += [f"{self._bytes / 1e6:.2f} MB", f"{elapsed:.0f} s, {left:.0f} s left"]
        if row.get("absent"):
            pieces += [f"{self._machines - len(row['absent'])} of {self._machines} machines"]
        if row.get("late"):
            pieces += ["late: " + ", ".join(f"part {part} (round {since})" for part, since in row["late"].items())]
        self._show("  ".join(pieces), last=done == self._rounds)
        for event in membership_lines(row):
            say(f"round {done}: {event}")
        if row.get("early_stop"):
            say(f"stopping early after round {done + 1}: {row['early_stop']}")
        for warning in row["warnings"]:
            say(f"warning: round {done}: {warning}")

    def _show(self, line: str, last: bool) -> None:
        if self._live:
            width = shutil.get_terminal_size().columns - 1
            print("\r\x1b[K" + line[:width], end="\n" if last else "", flush=True)
        else:
            print(line, flush=True)


def membership_lines(row: dict[str, Any]) -> list[str]:
    """Who was lost in a round and why, and who was back, in words."""
    lost = [f"part {part} is lost ({why}); the others go on" for part, why in row.get("lost", {}).items()]
    return lost + [f"part {part} is back" for part in row.get("returned", [])]


def say_summary(summary: dict[str, Any], run_dir: Path) -> None:
    """Shows the closing table of a finished run."""
    say("")
    say(table(*summary_table([summary])))
    if summary.get("privacy"):
        say(privacy_line(summary["privacy"]))
    say(f"records in {run_dir}")


_MEGABYTES = {
    "param MB": ("mb_up_per_round", "mb_down_per_round"),
    "grad MB": ("gradient_mb_per_round",),
    "feature MB": ("feature_mb_per_round",),
}


def summary_table(summaries: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Header and cells of a table with a row per run.

    Megabytes are per round and in both directions: of parameters, of every other kind that any of the runs sent, and in
    total.
    """
    sent_megabytes = [{name: _megabytes(s, keys) for name, keys in _MEGABYTES.items()} for s in summaries]
    kinds = [name for name in _MEGABYTES if name == "param MB" or any(megabytes[name] for megabytes in sent_megabytes)]
    header = ["method", "BN stats", "final val %", "best val %", "test % at best", *kinds]
    header += ["MB/round", "paper MB", "steps", "seconds"]
    rows = [
        [
            s["algorithm"],
            s["batchnorm_stats"],
            percent(s["final_val_score"]),
            percent(s["best_val_score"]),
            percent(s["test_score_at_best_val"]),
            *(f"{megabytes[name]:.3f}" for name in kinds),
            f"{sum(megabytes.values()):.3f}",
            f"{s['paper_mb_per_round']:.3f}",
            str(s["local_steps_total"]),
            f"{s['seconds_total']:.1f}",
        ]
        for s, megabytes in zip(summaries, sent_megabytes, strict=True)
    ]
    return header, rows


def _megabytes(summary: dict[str, Any], keys: Sequence[str]) -> float:
    """The sum of these keys; a summary of an older version lacks the kinds of message that it did not know."""
    return sum(summary.get(key, 0.0) for key in keys)


def percent(score: float | None) -> str:
    """A fraction in 0..1 as per cent with two decimals; `-` for None."""
    return "-" if score is None else f"{100 * score:.2f}"
