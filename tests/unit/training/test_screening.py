"""One machine's NaN must not poison the model of all."""

import math

import pytest
import torch

from llcg_dist.training.screening import screen

GOOD = torch.arange(3.0)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_updates_that_are_not_finite_are_left_out_with_their_weight(value: float) -> None:
    bad = GOOD.clone()
    bad[1] = value
    found = screen([GOOD, bad, GOOD + 1], [10.0, 20.0, 30.0], 3)
    assert [theta.tolist() for theta in found.vectors] == [[0, 1, 2], [1, 2, 3]]
    assert found.weights == [10.0, 30.0]
    assert found.skipped == [1]


def test_finite_updates_all_pass() -> None:
    found = screen([GOOD, -GOOD], [1.0, 2.0], 3)
    assert (len(found.vectors), found.weights, found.skipped) == (2, [1.0, 2.0], [])
    assert screen([], [], 3).vectors == []


@pytest.mark.parametrize("wrong", [torch.zeros(2), torch.zeros(1, 3), torch.zeros(3, dtype=torch.float64)])
def test_a_wrong_shape_or_type_names_the_part(wrong: torch.Tensor) -> None:
    with pytest.raises(ValueError, match="part 1 sent"):
        screen([GOOD, wrong], [1.0, 1.0], 3)


@pytest.mark.parametrize("weight", [0.0, -1.0, math.inf, math.nan])
def test_a_wrong_weight_names_the_part(weight: float) -> None:
    with pytest.raises(ValueError, match="part 1 has the weight"):
        screen([GOOD, GOOD], [1.0, weight], 3)


def test_a_missing_update_is_a_defect() -> None:
    with pytest.raises(ValueError, match="zip"):
        screen([GOOD], [1.0, 1.0], 3)
