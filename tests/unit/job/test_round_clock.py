"""The times of a round, by a clock of the test's own."""

import pytest

from llcg_dist.job.round_clock import RoundClock
from llcg_dist.stopwatch import Elapsed
from tests.helpers.fake_machines import stats

PHASES = {
    "measure": Elapsed(100.0, 10.0),
    "send": Elapsed(101.0, 10.5),
    "correct_beside": Elapsed(101.5, 10.75),
    "evaluate": Elapsed(102.0, 11.5),
    "wait": Elapsed(110.0, 14.75),
    "correct": Elapsed(111.0, 15.25),
}
"""When each phase ends, in seconds and in CPU seconds; the round begins at 100 and 10."""
WORKED = [
    stats(seconds_local=3.0, cpu_local=2.0, began=1000.5, ended=1004.0),
    stats(seconds_local=6.0, cpu_local=1.0, began=1000.75, ended=1009.0),
]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> RoundClock:
    moments = iter([PHASES["measure"], *PHASES.values()])
    monkeypatch.setattr("llcg_dist.job.round_clock.now", lambda: next(moments))
    monkeypatch.setattr("llcg_dist.job.round_clock.time.time", lambda: 1000.0)
    clock = RoundClock()
    for phase in PHASES:
        clock.ended(phase)
    return clock


def test_seconds_of_a_round(clock: RoundClock) -> None:
    """The server is free after 2 s, all have replied after 10, the round ends after 11; machines worked 3 and 6 s."""
    expected = {"seconds_exchange": 4.0, "seconds_correct": 1.0, "seconds_round": 11.0, "cpu_correct": 0.5}
    assert expected.items() <= clock.columns(WORKED, True, True).items()
    assert clock.columns(WORKED, False, True)["seconds_exchange"] == 0.0


def test_with_a_core_for_each_rank_the_longest_counts_and_what_comes_after_it(clock: RoundClock) -> None:
    """The server works 1.5 s beside machines that work 2 and 1, 3.25 on replies, and 0.5 on the correction. Machines
    that take turns do their 3 seconds of work while it waits for them: of the 3.25, 0.25 are its own."""
    assert clock.columns(WORKED, True, True)["cpu_round"] == 2.0 + 3.25 + 0.5
    assert clock.columns(WORKED, False, True)["cpu_round"] == 2.0 + 0.25 + 0.5
    assert clock.columns(WORKED[1:], True, True)["cpu_round"] == 1.5 + 3.25 + 0.5
    assert clock.columns(WORKED, False, False)["cpu_round"] == 1.5 + 3.0 + 0.25 + 0.5  # the server is the machine
    assert clock.columns([], True, True)["cpu_round"] == 1.5 + 3.25 + 0.5


def test_a_timeline_has_a_span_for_every_phase_and_machine(clock: RoundClock) -> None:
    timeline = clock.columns(WORKED, True, True)["timeline"]
    assert timeline.pop("machines") == [[0.5, 4.0], [0.75, 9.0]]
    assert list(timeline) == list(PHASES)
    assert (timeline["send"], timeline["correct_beside"], timeline["wait"]) == ([0.0, 1.0], [1.0, 1.5], [2.0, 10.0])
