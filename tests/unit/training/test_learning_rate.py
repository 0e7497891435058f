"""A learning rate depends on its place in the run, and on nothing that happened before."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llcg_dist.config.train import LrSchedule, LrUnit, TrainConfig
from llcg_dist.training.learning_rate import LearningRates, lr_factor

schedules = st.sampled_from(LrSchedule)
totals = st.integers(1, 300)
warmups = st.floats(0, 0.99)


def factors(schedule: LrSchedule, total: int, warmup: float = 0.1) -> list[float]:
    return [lr_factor(schedule, index, total, warmup) for index in range(total)]


@given(schedules, totals, warmups)
def test_every_step_moves_and_none_further_than_the_rate(schedule: LrSchedule, total: int, warmup: float) -> None:
    found = factors(schedule, total, warmup)
    assert min(found) > 0
    assert max(found) <= 1


@given(schedules, totals, warmups)
def test_it_rises_first_and_then_falls(schedule: LrSchedule, total: int, warmup: float) -> None:
    found = factors(schedule, total, warmup)
    top = found.index(max(found))
    assert all(a < b for a, b in pairwise(found[: top + 1]))
    after = list(pairwise(found[top:]))
    if schedule == LrSchedule.cosine_end:  # it stays at the top until the end begins
        assert all(a >= b for a, b in after)
        return
    assert all(a > b for a, b in after) if "cosine" in schedule else all(a == b for a, b in after)


@given(schedules, totals, warmups, st.integers(0, 1000))
def test_places_beyond_the_plan_stay_at_the_last(schedule: LrSchedule, total: int, warmup: float, beyond: int) -> None:
    assert lr_factor(schedule, total + beyond, total, warmup) == factors(schedule, total, warmup)[-1]


def test_by_hand() -> None:
    assert factors(LrSchedule.constant, 3) == [1.0, 1.0, 1.0]
    root = math.sqrt(0.5)
    assert factors(LrSchedule.cosine, 4) == pytest.approx([1, (1 + root) / 2, 0.5, (1 - root) / 2])
    assert factors(LrSchedule.warmup, 4, warmup=0.5) == pytest.approx([1 / 3, 2 / 3, 1, 1])
    assert factors(LrSchedule.warmup_cosine, 4, warmup=0.5) == pytest.approx([1 / 3, 2 / 3, 1, 0.5])


def test_the_end_alone_falls() -> None:
    """Of eight places the last two follow a cosine of their own: 1 and 0.5."""
    found = [lr_factor(LrSchedule.cosine_end, index, 8, 0.1, 0.25) for index in range(9)]
    assert found == pytest.approx([1, 1, 1, 1, 1, 1, 1, 0.5, 0.5])
    assert [lr_factor(LrSchedule.cosine_end, index, 4, 0.1, 1.0) for index in range(4)] == factors(LrSchedule.cosine, 4)
    assert lr_factor(LrSchedule.cosine_end, 0, 1, 0.1, 0.25) == 1
    rates = LearningRates(TrainConfig(lr_schedule=LrSchedule.cosine_end, lr_end=0.5), [3] * 4, planned_rounds=4)
    assert [rates.machine(round_, 1) for round_ in (1, 2, 3, 4)] == pytest.approx([1, 1, 1, 0.5])
    assert rates.server(4, 0) == rates.machine(4, 0)


def test_counted_in_rounds_all_steps_of_a_round_go_as_far() -> None:
    rates = LearningRates(TrainConfig(lr_schedule=LrSchedule.cosine), steps=[1, 2, 5], planned_rounds=3)
    expected = factors(LrSchedule.cosine, 3)
    for round_ in (1, 2, 3):
        assert {rates.machine(round_, step) for step in range(5)} == {expected[round_ - 1]}
        assert rates.server(round_, 7) == expected[round_ - 1]


def test_counted_in_steps_growing_rounds_fall_late() -> None:
    """Rounds of 1, 2 and 5 steps are places 0, 1-2 and 3-7 of 8; the server takes the machines' first."""
    rates = LearningRates(
        TrainConfig(lr_schedule=LrSchedule.cosine, lr_unit=LrUnit.steps), steps=[1, 2, 5], planned_rounds=3
    )
    places = [rates.machine(round_, step) for round_, steps in ((1, 1), (2, 2), (3, 5)) for step in range(steps)]
    assert places == factors(LrSchedule.cosine, 8)
    assert [rates.server(round_, 1) for round_ in (1, 2, 3)] == [places[0], places[1], places[3]]


@pytest.mark.parametrize("unit", ["rounds", "steps"])
def test_a_run_that_goes_on_longer_keeps_its_plan(unit: str) -> None:
    config = TrainConfig(lr_schedule=LrSchedule.warmup_cosine, lr_unit=LrUnit(unit), lr_warmup=0.3)
    planned = LearningRates(config, [1, 2, 5], planned_rounds=3)
    longer = LearningRates(config, [1, 2, 5, 6, 7], planned_rounds=3)
    for round_ in (1, 2, 3):
        assert [planned.machine(round_, step) for step in range(5)] == [longer.machine(round_, s) for s in range(5)]
    assert longer.machine(5, 2) == planned.machine(3, 4)


def test_without_local_steps_rounds_are_counted() -> None:
    rates = LearningRates(
        TrainConfig(lr_schedule=LrSchedule.cosine, lr_unit=LrUnit.steps), steps=[0] * 4, planned_rounds=4
    )
    assert [rates.server(round_, 0) for round_ in (1, 2, 3, 4)] == factors(LrSchedule.cosine, 4)
