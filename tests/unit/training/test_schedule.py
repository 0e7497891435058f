"""Section "Schedule" of the specification, and a reference in exact arithmetic."""

import math
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from llcg_dist.config.algorithm import AlgorithmConfig, Schedule
from llcg_dist.errors import UserError
from llcg_dist.training.schedule import local_steps

rounds = st.integers(1, 200)
means = st.floats(1, 500)
growths = st.floats(0.5, 2)


def steps_of(K: float, rho: float, R: int, schedule: str = "equal_total", limit: int | None = None) -> list[int]:
    return local_steps(AlgorithmConfig("llcg", K, rho, schedule=Schedule(schedule), max_local_steps=limit), R)


def exact_steps(base: Fraction, rho: Fraction, R: int) -> tuple[list[int], list[int]]:
    """(before, after) the minimum of one step a round, from K·rho^r without rounding errors."""
    running = [sum((base * rho**i for i in range(1, r + 1)), Fraction(0)) for r in range(R + 1)]
    whole = [math.floor(c + Fraction(1, 2)) for c in running]
    before = [b - a for a, b in pairwise(whole)]
    after = [max(1, step) for step in before]
    surplus = sum(after) - max(whole[-1], R)
    for r in reversed(range(R)):
        taken = min(surplus, after[r] - 1)
        after[r], surplus = after[r] - taken, surplus - taken
    return before, after


@given(means, growths, rounds)
def test_equal_total_is_exact_whatever_rho(K: float, rho: float, R: int) -> None:
    steps = steps_of(K, rho, R)
    assert len(steps) == R
    assert abs(sum(steps) - K * R) <= 0.5
    assert min(steps) >= 1


@given(st.integers(1, 10**6), rounds, st.sampled_from(["equal_total", "literal"]))
def test_without_growth_whole_k_is_taken_every_round(K: int, R: int, schedule: str) -> None:
    assert steps_of(K, 1.0, R, schedule) == [K] * R


def test_mean_of_one_step_leaves_one_step_a_round_whatever_rho() -> None:
    assert steps_of(1, 1.1, 50) == [1] * 50
    assert steps_of(1, 0.7, 50) == [1] * 50


def test_fractions_of_a_step_add_up() -> None:
    assert steps_of(2.5, 1.0, 4) == [3, 2, 3, 2]  # C = 2.5, 5, 7.5, 10 -> 3, 5, 8, 10


def test_by_hand_with_doubling() -> None:
    assert steps_of(2, 2.0, 3, "literal") == [4, 8, 16]
    assert steps_of(14, 2.0, 3) == [6, 12, 24]  # 42 in all: base 3


def test_arxiv_of_the_paper() -> None:
    """K = 64, R = 100, rho = 1.1: base 0.042, K·rho^100 = 582 steps, 6,400 in all."""
    K, rho, R = 64, Fraction(11, 10), 100
    base = K * R * (rho - 1) / (rho * (rho**R - 1))
    assert float(base) == pytest.approx(0.0422, abs=5e-5)
    assert round(base * rho**R) == 582
    before, after = exact_steps(base, rho, R)
    assert before[-1] == 582
    steps = steps_of(64, 1.1, 100)
    assert steps == after
    assert sum(steps) == 6400
    # Twenty-three early rounds round to no step and take one all the same; the last round pays for them.
    assert before.count(0) == 23
    assert steps[-1] == 582 - 23


@given(st.integers(1, 64), st.integers(1, 20), st.sampled_from([Fraction(21, 20), Fraction(9, 8), Fraction(3, 4)]))
def test_literal_equals_exact_arithmetic(sevenths: int, R: int, rho: Fraction) -> None:
    base = Fraction(sevenths, 7)  # sevenths: no running sum is a tie that a rounding error could turn
    _, after = exact_steps(base, rho, R)
    assert steps_of(float(base), float(rho), R, "literal") == after


@given(st.floats(1, 100), st.floats(1, 1.3), st.integers(1, 40))
def test_steps_do_not_shrink_but_for_rounding(K: float, rho: float, R: int) -> None:
    """K·rho^r >= 1 in every round: nothing is raised, and two neighbours differ by the rounding at most."""
    steps = steps_of(K, rho, R, "literal")
    assert all(after >= before - 1 for before, after in pairwise(steps))
    assert steps[-1] >= math.floor(K * rho**R)


@given(means, st.floats(1, 2), rounds)
def test_only_the_last_rounds_pay_for_the_minimum(K: float, rho: float, R: int) -> None:
    """Growing up to the rounding, then perhaps one round that pays in part, then rounds that keep one step."""
    steps = steps_of(K, rho, R)
    falls = [r for r, (before, after) in enumerate(pairwise(steps)) if after < before - 1]
    if falls:
        assert set(steps[falls[0] + 2 :]) <= {1}


@given(st.floats(0.01, 20), st.floats(0.8, 1.2), st.integers(1, 60), st.integers(1, 50))
@example(0.1, 1.1, 60, 5)  # many early rounds are raised to one step
def test_limit_cuts_rounds_and_changes_nothing_else(K: float, rho: float, R: int, limit: int) -> None:
    free = steps_of(K, rho, R, "literal")
    assert steps_of(K, rho, R, "literal", limit) == [min(step, limit) for step in free]


@given(means, st.floats(0.9, 1.1), st.integers(1, 40), st.integers(1, 20), st.sampled_from(["equal_total", "literal"]))
def test_a_run_that_goes_on_keeps_its_rounds_and_its_growth(K: float, rho: float, R: int, more: int, how: str) -> None:
    config = AlgorithmConfig("llcg", K, rho, schedule=Schedule(how))
    planned, longer = local_steps(config, R), local_steps(config, R, R + more)
    assert len(longer) == R + more
    assert longer[:R] == planned
    base = K if how == "literal" else round(K * R) / sum(rho**r for r in range(1, R + 1))
    for r in range(R + 1, R + more + 1):
        assert longer[r - 1] == pytest.approx(base * rho**r, abs=1 + 1e-6 * base * rho**r)


def test_limit_on_equal_total() -> None:
    assert steps_of(14, 2.0, 3, limit=10) == [6, 10, 10]


def test_literal_growth_without_limit_is_refused_with_the_way_out() -> None:
    with pytest.raises(UserError) as refused:
        steps_of(64, 1.1, 1000, "literal")
    message = str(refused.value)
    assert "algorithm.schedule=literal" in message
    assert "round 1000" in message
    assert "algorithm.max_local_steps" in message
    assert "\n" not in message


def test_literal_growth_of_the_paper_reaches_880_000_steps() -> None:
    assert steps_of(64, 1.1, 100, "literal")[-1] == pytest.approx(880_000, rel=0.01)


@pytest.mark.parametrize("rho", [1.1, 3.0, 1e300])
def test_any_growth_is_fine_with_a_limit(rho: float) -> None:
    steps = steps_of(64, rho, 5000, "literal", limit=1000)
    assert steps[-1] == max(steps) == 1000
    assert steps[0] == min(round(64 * rho), 1000)


@pytest.mark.parametrize("rho", [1e-3, 1 + 1e-12, 3.0, 1e300])
def test_equal_total_survives_any_growth(rho: float) -> None:
    steps = steps_of(4, rho, 1000)
    assert sum(steps) == 4000
    assert min(steps) >= 1


def test_more_steps_than_a_number_holds_is_the_users_mistake() -> None:
    with pytest.raises(UserError, match="algorithm.K"):
        steps_of(1e308, 1.1, 20)
