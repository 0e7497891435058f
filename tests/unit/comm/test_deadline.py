"""When machines are late: a multiple of what the median machine takes for a step."""

import time

import pytest

from llcg_dist.comm.deadline import Deadline


def noted(deadline: Deadline, round_: int, seconds: dict[int, float | None]) -> None:
    deadline.begin(round_)
    began = time.monotonic()
    deadline.note({rank: None if took is None else began + took for rank, took in seconds.items()})


def seconds_left(deadline: Deadline, round_: int, asked: int) -> tuple[float, int]:
    deadline.begin(round_)
    began, patience = time.monotonic(), deadline.patience(asked)
    assert patience is not None
    return patience.until - began, patience.least


def test_nobody_is_late_before_the_first_round_has_ended() -> None:
    deadline = Deadline(2.0, [10])
    deadline.begin(1)
    assert deadline.patience(3) is None


def test_a_slow_machine_does_not_move_the_median_and_growing_rounds_have_longer_deadlines() -> None:
    deadline = Deadline(2.0, [10, 10, 40])
    noted(deadline, 1, {1: 1.0, 2: 1.2, 3: 5.0})
    until, least = seconds_left(deadline, 2, 3)
    assert until == pytest.approx(2 * 1.2, abs=0.05)
    assert least == 2
    assert seconds_left(deadline, 3, 4) == (pytest.approx(8 * 1.2, abs=0.05), 2)


def test_those_that_are_late_count_as_slower_than_all_others() -> None:
    deadline = Deadline(1.5, [1, 1])
    noted(deadline, 1, {1: 1.0, 2: None, 3: 3.0, 4: None})
    assert seconds_left(deadline, 2, 4)[0] == pytest.approx(1.5 * 3.0, abs=0.05)
