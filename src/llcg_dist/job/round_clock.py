"""Where the time of a round goes, by the server's clock, and what the round would take with a core for each rank."""

import statistics
import time
from collections.abc import Sequence
from typing import Any

from llcg_dist.comm.messages import TrainStats
from llcg_dist.stopwatch import Elapsed, now

BESIDE = ("send", "correct_beside", "evaluate")
"""The phases of the server from the moment it has a model until it waits for the machines' replies."""


class RoundClock:
    """Runs from the start of a round, and notes when each of the server's phases ends; the next then begins."""

    def __init__(self) -> None:
        self._epoch = time.time()
        self._started = self._last = now()
        self._phases: dict[str, tuple[Elapsed, Elapsed]] = {}

    def ended(self, phase: str) -> None:
        """`phase` began where the one before it ended."""
        moment = now()
        self._phases[phase] = self._last - self._started, moment - self._started
        self._last = moment

    def columns(
        self, stats: Sequence[TrainStats], parallel: bool, machines_are_others: bool, waited: float | None = None
    ) -> dict[str, Any]:
        """The round's times, after its last phase (see RoundResult). `parallel`: the machines worked at the same time.
        `machines_are_others`: not the server itself, which would do all of it on one core. `waited`: where a machine
        was waited for in vain, how many times as long as the median machine took (cluster.deadline)."""
        replied = self._end("wait").seconds
        own, local = self._end("evaluate").seconds, [machine.seconds_local for machine in stats]
        busy = max([own, *local]) if parallel else own + sum(local)
        local_cpu = [machine.cpu_local for machine in stats]
        median = statistics.median_low(local_cpu or [0.0])
        return {
            # What was neither local work nor the server's own is the exchange.
            "seconds_exchange": max(0.0, replied - busy),
            "seconds_correct": self._end("correct").seconds - replied,
            "seconds_round": self._end("correct").seconds,
            "cpu_correct": self._cpu("correct"),
            "cpu_round": self._cpu_round(local_cpu, parallel, machines_are_others, (waited or 0.0) * median),
            "timeline": self._timeline(stats),
        }

    def _cpu_round(self, local: Sequence[float], parallel: bool, machines_are_others: bool, waited: float) -> float:
        """The longest of what ranks do at the same time, and what the server does with replies while machines wait;
        machines that take turns in its process do their work while it waits. `waited`: seconds, for one that is late.
        """
        beside = sum(self._cpu(phase) for phase in BESIDE)
        busy = max([beside, waited, *local]) if machines_are_others else beside + sum(local)
        replies = self._cpu("wait") if parallel else max(0.0, self._cpu("wait") - sum(local))
        return busy + replies + self._cpu("correct")

    def _end(self, phase: str) -> Elapsed:
        return self._phases[phase][1]

    def _cpu(self, phase: str) -> float:
        began, ended = self._phases[phase]
        return (ended - began).cpu

    def _timeline(self, stats: Sequence[TrainStats]) -> dict[str, Any]:
        """[begin, end] of every phase of the server, and of every machine's work, in seconds since the round began."""
        phases = {name: [began.seconds, ended.seconds] for name, (began, ended) in self._phases.items()}
        machines = [[machine.began - self._epoch, machine.ended - self._epoch] for machine in stats]
        return phases | {"machines": machines}
