"""What follows from the figures of a pilot, by hand."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llcg_dist.advise.decision import (
    Curve,
    affordable_rounds,
    choose,
    evaluate_every,
    expected_speed_up,
    longer_local_steps,
    soonest,
    target_of,
    useful_machines,
)


def curve(name: str, alone: bool, *scores: float, each: float = 1.0) -> Curve:
    return Curve(name, alone, [each * (place + 1) for place in range(len(scores))], list(scores))


def test_a_curve_by_hand() -> None:
    found = curve("one", True, 0.2, 0.5, 0.4, 0.8, each=2.0)
    assert (found.best, found.rounds_to(0.45), found.seconds_to(0.45)) == (0.8, 2, 4.0)
    assert (found.rounds_to(0.9), found.seconds_to(0.9)) == (None, math.inf)
    rarely = curve("one", True, 0.0, 0.0, 0.0, 0.4, 0.0, 0.0, 0.0, 0.8)  # every fourth round evaluated
    assert [rarely.rounds_to(score) for score in (0.05, 0.3, 0.4, 0.5, 0.8)] == [1, 3, 4, 5, 8]
    assert [found.best_by(seconds) for seconds in (1.0, 4.5, 6.0, 9.0)] == [0.0, 0.5, 0.5, 0.8]
    assert found.score_range == (0.8, 1.0)
    assert curve("flat", True, 0.5, 0.5, 0.5).score_range == (0.5, 0.5)


def test_several_machines_must_be_clearly_sooner() -> None:
    one, several = curve("one", True, 0.5, 0.9), curve("llcg", False, 0.5, 0.9, each=0.95)
    assert choose([one, several]) is one
    sooner = curve("llcg", False, 0.5, 0.9, each=0.8)
    assert choose([one, sooner]) is sooner
    assert choose([one]) is one


def test_who_reaches_nothing_loses() -> None:
    """One machine comes to 0.9 in its pilot, the others stay far below in the same time."""
    one, several = curve("one", True, 0.5, 0.7, 0.9), curve("llcg", False, 0.3, 0.4, 0.4)
    assert choose([one, several]) is one
    slow = curve("one", True, 0.1, 0.2)
    assert choose([slow, several]) is several


def test_several_machines_whose_pilot_ends_early_are_compared_in_equal_time() -> None:
    one = curve("one", True, 0.2, 0.4, 0.6, 0.9)
    assert choose([one, ahead := curve("llcg", False, 0.5, 0.6)]) is ahead
    assert choose([one, curve("llcg", False, 0.1, 0.2)]) is one


def test_among_several_too() -> None:
    """Longer rounds are ahead when their pilot ends."""
    one = curve("one", True, *[0.1 * r for r in range(10)])
    ways = [curve("llcg", False, 0.3, 0.5, 0.8, 0.9), curve("longer", False, 0.6, each=2.0)]
    assert soonest([one, *ways], alone=False).name == "longer"
    ways[1] = curve("longer", False, 0.4, each=2.0)
    assert soonest([one, *ways], alone=False).name == "llcg"


def test_the_target_is_one_machines() -> None:
    """That several machines come further later says nothing about who is sooner where both come."""
    one, several = curve("one", True, 0.8, 0.8, 0.8), curve("llcg", False, 0.7, 0.8, 0.99)
    assert target_of([one, several]) == pytest.approx(0.776)
    assert choose([one, several]) is one


def test_the_better_of_two_ways_to_cut() -> None:
    one = curve("one", True, 0.2, 0.3, 0.4, 0.9)
    ways = [curve("metis", False, 0.5, 0.7, 0.9, 0.9), curve("clusters", False, 0.6, 0.9, 0.9)]
    assert choose([one, *ways]).name == soonest([one, *ways], alone=False).name == "clusters"


def test_the_speed_up_between_its_limits() -> None:
    assert expected_speed_up(0.0, 64, 8) == 1
    assert expected_speed_up(math.inf, 64, 8) == 8
    assert expected_speed_up(64, 64, 2) == pytest.approx(2 / 1.5)
    assert expected_speed_up(1e9, 64, 8) == pytest.approx(8, rel=1e-3)


@given(st.floats(0, 1e8), st.integers(1, 4096), st.integers(1, 64))
def test_useful_machines_are_worth_half_each(noise: float, batch: int, most: int) -> None:
    found = useful_machines(noise, batch, most)
    assert 1 <= found <= most
    assert expected_speed_up(noise, batch, found) / found >= 0.5 - 1e-9
    if found < most:
        assert expected_speed_up(noise, batch, found + 1) / (found + 1) < 0.5 + 1e-9


def test_longer_rounds_have_time_for_a_slow_link() -> None:
    """Four times the steps; where 8 of them take a second and the link half of one, ten times, up to 64 steps."""
    assert longer_local_steps(8, 1.0, 0.1) == 32
    assert longer_local_steps(8, 1.0, 0.5) == 40
    assert longer_local_steps(8, 1.0, 50.0) == 64
    assert longer_local_steps(100, 1.0, 50.0) == 100
    assert longer_local_steps(8, 0.0, 1.0) == 64


def test_rounds_of_a_pilot() -> None:
    assert [evaluate_every(1.0, evaluating) for evaluating in (0.0, 0.9, 1.0, 2.5)] == [1, 1, 1, 3]
    assert [affordable_rounds(10, each, 4, 60) for each in (0.01, 1.0, 100.0, 0.0)] == [60, 10, 4, 60]
