"""From the runs of studies/map.py to a table and a figure: who is sooner where, and what the noise scale predicts."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
from bench.harness import table

from llcg_dist.advise.decision import expected_speed_up
from llcg_dist.report.figure import new_canvas, save_png
from llcg_dist.report.lines import plain_ticks
from llcg_dist.report.style import SETTINGS
from studies.map_grid import NETWORKS, ONE, ONE_LARGE
from studies.timed_runs import TimedRun

PAGE = Path(__file__).parent.parent / "docs" / "studies" / "pays.md"
NEARLY = 0.97
_COLOURS = ("#d55e00", "#0072b2", "#009e73")


@dataclass(frozen=True)
class Place:
    """One graph and number of machines, with the runs of every method: one for each learning rate."""

    size: str
    task: str
    machines: int
    batch: int
    runs: Mapping[str, Sequence[TimedRun]]
    noise_at_start: float
    noise_after: float

    @property
    def target(self) -> float:
        """97 % of the best score that one machine reaches, in %."""
        return NEARLY * max(run.best for method in (ONE, ONE_LARGE) for run in self.runs[method])

    def seconds(self, method: str, link_mbit: float) -> float:
        """Of the learning rate that is soonest; infinite where none reaches the target."""
        return min(run.seconds_to(self.target, link_mbit) for run in self.runs[method])

    def one_machine(self) -> float:
        """Seconds of one machine with the better of both batches; it sends nothing."""
        return min(self.seconds(method, math.inf) for method in (ONE, ONE_LARGE))

    def times_sooner(self, method: str, link_mbit: float) -> float:
        """Than one machine; 0 where the target is never reached."""
        return self.one_machine() / self.seconds(method, link_mbit)

    @property
    def predicted(self) -> float:
        return expected_speed_up(self.noise_after, self.batch, self.machines)

    def soonest(self, link_mbit: float) -> str:
        return min(self.runs, key=lambda method: self.seconds(method, link_mbit))


def markdown(found: Sequence[Place]) -> str:
    """A row for each place: seconds of one machine, times sooner of every method by network, and the prediction."""
    methods = [method for method in found[0].runs if method not in (ONE, ONE_LARGE)]
    rates = " / ".join(map(str, NETWORKS))
    head = ["nodes of products", "task", "P", "target %", "noise scale, start / after", "predicted", "one machine, s"]
    head += [*(f"{method}, times sooner at {rates} Mbit/s" for method in methods), "soonest at each"]
    rows = []
    for place in found:
        sooner = [" / ".join(f"{place.times_sooner(method, rate):.2g}" for rate in NETWORKS) for method in methods]
        noise = f"{place.noise_at_start:.3g} / {place.noise_after:.3g}"
        winners = " / ".join(dict.fromkeys(place.soonest(rate) for rate in NETWORKS))
        numbers = [f"{place.target:.1f}", noise, f"{place.predicted:.2g}", f"{place.one_machine():.3g}"]
        rows.append([place.size, place.task, place.machines, *numbers, *sooner, winners])
    return table(head, rows)


def draw(found: Sequence[Place], path: Path) -> None:
    """How many times sooner the best of several machines is, over the noise scale in units of P x B."""
    with mpl.rc_context(SETTINGS):
        drawn = new_canvas(6, 4)
        axes = drawn.subplots()
        ratios = [_noise_ratio(place) for place in found]
        for rate, marker, colour in zip(NETWORKS, "v^o", _COLOURS, strict=True):
            times = [_times_sooner(place, rate) for place in found]
            axes.scatter(ratios, times, marker=marker, color=colour, label=f"{rate:,} Mbit/s")
        predicted = [place.predicted for place in found]
        axes.scatter(ratios, predicted, marker="x", color="#888888", label="predicted")
        axes.axhline(1, color="#888888", linewidth=0.6)
        axes.set(xscale="log", xlabel="gradient noise scale / (P x B)", ylabel="times sooner than one machine")
        plain_ticks(axes.xaxis)
        axes.legend()
        save_png(drawn, path)


def _times_sooner(place: Place, rate: float) -> float:
    """Of the soonest method with several machines."""
    return max(place.times_sooner(method, rate) for method in place.runs if method not in (ONE, ONE_LARGE))


def _noise_ratio(place: Place) -> float:
    return max(place.noise_after / (place.machines * place.batch), 1e-3)
