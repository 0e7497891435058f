"""From the runs of studies/map.py to a table: who is sooner where, and what the noise scale predicts."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.harness import table

from llcg_dist.advise.decision import expected_speed_up
from studies.map_grid import NETWORKS, ONE, ONE_LARGE
from studies.timed_runs import TimedRun

PAGE = Path(__file__).parent.parent / "docs" / "studies" / "pays.md"
NEARLY = 0.97
_ABOUT = f"""Columns of methods: how many times sooner than one machine, with links of
{" / ".join(f"{rate:,}" for rate in NETWORKS)} Mbit/s. Noise scale: in examples, at the start / at the best model of one
machine, from which the speed-up is predicted, bytes apart."""


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

    def batch_alone(self) -> int:
        """Of that."""
        is_large = self.seconds(ONE_LARGE, math.inf) < self.seconds(ONE, math.inf)
        return self.batch * (self.machines if is_large else 1)

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
    head = ["nodes", "task", "P", "target %", "noise scale", "predicted", "one machine, s (batch)", *methods, "soonest"]
    rows = []
    for place in found:
        sooner = [" / ".join(_times(place.times_sooner(method, rate)) for rate in NETWORKS) for method in methods]
        noise = f"{place.noise_at_start:.3g} / {place.noise_after:.3g}"
        alone = f"{place.one_machine():.3g} ({place.batch_alone()})"
        winners = " / ".join(dict.fromkeys(place.soonest(rate) for rate in NETWORKS))
        numbers = [f"{place.target:.1f}", noise, f"{place.predicted:.2g}", alone]
        rows.append([place.size, place.task, place.machines, *numbers, *sooner, winners])
    return f"{table(head, rows)}\n\n{_ABOUT}"


def _times(sooner: float) -> str:
    return f"{sooner:.2g}" if sooner else "never"
