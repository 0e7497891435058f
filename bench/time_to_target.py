"""What the rows of a run say about the time to a score, and how bench/slow_network.py shows it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes

from bench.harness import Claim, Spread, table
from llcg_dist.records.columns import sent_bytes
from llcg_dist.report.figure import new_canvas, save_png
from llcg_dist.report.lines import plain_ticks
from llcg_dist.report.style import SETTINGS, line_style

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Outcome:
    """A run up to the first model that is good enough, or as far as it came."""

    reached: bool
    seconds: float
    """Until that model was ready; of a run that did not come so far, all that it took: a lower bound."""
    rounds: int
    best: float
    seconds_a_round: float
    megabytes_a_round: float

    @classmethod
    def of(cls, rows: Rows, target: float) -> "Outcome":
        counted = until(rows, target)
        best = max((row["val_score"] for row in counted), default=0.0)
        rounds, seconds = len(counted), sum(row["seconds_round"] for row in counted)
        megabytes = sum(map(sent_bytes, counted)) / 1e6
        reached = bool(counted) and best >= target
        return cls(reached, seconds, rounds, best, seconds / max(rounds, 1), megabytes / max(rounds, 1))

    @property
    def text(self) -> str:
        return f"{self.seconds:.1f}" if self.reached else f"not in {self.seconds:.0f}"


def until(rows: Rows, target: float) -> Rows:
    """The rows up to the first model that is good enough; all of them where none is."""
    first = next((place for place, row in enumerate(rows) if row["val_score"] >= target), len(rows))
    return rows[: first + 1]


def times_sooner(method: Outcome, rival: Outcome) -> float:
    """At least so many times; 0 where the method itself did not reach the target."""
    return rival.seconds / method.seconds if method.reached else 0.0


def claims(outcomes: Mapping[int, Mapping[str, Outcome]], rate: int) -> list[Claim]:
    """LLCG against the methods that keep the cut edges, on the slow network."""
    found = []
    for rival in ("ggs", "full_sync"):
        of, method = outcomes[rate][rival], outcomes[rate]["llcg"]
        bound = "" if of.reached else f", which had not come there when it was stopped at {100 * of.best:.1f} %"
        what = f"{rate} Mbit/s: llcg reaches the target so many times sooner than {rival}{bound}"
        found.append(Claim(what, Spread.of([times_sooner(method, of)]), at_least=10))
    return found


def markdown(outcomes: Mapping[int, Mapping[str, Outcome]]) -> str:
    head = [
        "Mbit/s",
        "method",
        "seconds to the target",
        "times llcg's",
        "rounds",
        "s a round",
        "MB a round",
        "best val %",
    ]
    rows = []
    for rate, methods in outcomes.items():
        for method, of in methods.items():
            each = [f"{of.seconds_a_round:.2f}", f"{of.megabytes_a_round:,.1f}", f"{100 * of.best:.1f}"]
            rows.append([rate, method, of.text, _times(methods["llcg"], of), of.rounds, *each])
    return table(head, rows)


def _times(llcg: Outcome, of: Outcome) -> str:
    if not llcg.reached:
        return "–"
    return f"{'' if of.reached else '> '}{times_sooner(llcg, of):.3g}"


def draw(curves: Mapping[int, Mapping[str, Rows]], target: float, path: Path) -> None:
    """Validation score by seconds of training, a picture for each rate."""
    with mpl.rc_context(SETTINGS):
        drawn = new_canvas(5.2 * len(curves), 4)
        pictures = drawn.subplots(1, len(curves), sharex=True, sharey=True, squeeze=False)[0]
        for axes, (rate, methods) in zip(pictures, curves.items(), strict=True):
            _panel(axes, methods, target)
            axes.set(title=f"{rate} Mbit/s", xlabel="seconds of training", xscale="log")
            plain_ticks(axes.xaxis)
        pictures[0].set_ylabel("validation accuracy (%)")
        handles, labels = pictures[0].get_legend_handles_labels()
        drawn.legend(handles, labels, loc="outside lower center", ncols=3 * len(curves))
        save_png(drawn, path)


def _panel(axes: Axes, methods: Mapping[str, Rows], target: float) -> None:
    for method, rows in methods.items():
        seconds = list(accumulate(row["seconds_round"] for row in rows))
        axes.plot(seconds, [100 * row["val_score"] for row in rows], label=method, **line_style(method))
    axes.axhline(100 * target, color="#888888", linewidth=1, linestyle="--", label="target")
    axes.grid(alpha=0.25, linewidth=0.6)
