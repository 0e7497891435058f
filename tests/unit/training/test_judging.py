"""Updates by their length against the median of the round: by hand, and what holds for any lengths."""

import functools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from llcg_dist.config.compose import load_config
from llcg_dist.training.judging import PARAMETERS, STATISTICS, Judge, Verdict, lower_median

LAST_IS_STATISTIC = torch.tensor([False, False, True])
VALUES = st.floats(-(2.0**100), 2.0**100, width=32, allow_subnormal=False)
LENGTHS = st.lists(st.floats(0, 1e30), min_size=1, max_size=9)


@functools.cache
def judge(*overrides: str) -> Judge:
    settings = ["algorithm.screen_factor=5", "algorithm.batchnorm_stats=average", *overrides]
    return Judge(load_config(settings).algorithm, LAST_IS_STATISTIC)


def vector(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float32)


START = vector(1, 1, 1)


def test_lengths_of_parameters_and_statistics_apart() -> None:
    found = judge().lengths([vector(4, 5, 1), vector(1, 1, 8)], START)
    assert found == {PARAMETERS: [5.0, 0.0], STATISTICS: [0.0, 7.0]}
    recalibrated = judge("algorithm.batchnorm_stats=recalibrate").lengths([vector(4, 5, 100)], START)
    assert recalibrated == {PARAMETERS: [5.0]}


@pytest.mark.parametrize("value", [1e30, 3e38, -3e38])
def test_lengths_beyond_float32(value: float) -> None:
    (found,) = judge().lengths([vector(value, value, 1)], vector(-value, 0, 1))[PARAMETERS]
    assert found == pytest.approx(abs(value) * 5**0.5, rel=1e-6)


def test_an_update_that_is_too_long_is_found_and_shortened() -> None:
    models = [vector(2, 1, 1), vector(1, 1001, 1), vector(1, 3, 1)]
    judging = judge()
    lengths = judging.lengths(models, START)
    assert judging.verdicts(lengths, [0, 4, 7]) == [Verdict(4, PARAMETERS, 500.0)]  # the median is 2
    assert judging.shortened(models[1], START, lengths).tolist() == [1, 11, 1]
    assert judging.shortened(models[2], START, lengths).tolist() == [1, 3, 1]


def test_statistics_are_found_and_shortened_too() -> None:
    models = [vector(2, 1, 2), vector(2, 1, 201), vector(1, 2, 0)]
    judging = judge()
    lengths = judging.lengths(models, START)
    assert judging.verdicts(lengths, [0, 1, 2]) == [Verdict(1, STATISTICS, 200.0)]
    assert judging.shortened(models[1], START, lengths).tolist() == [2, 1, 6]


def test_statistics_that_nobody_uses_do_not_pass_with_what_is_shortened() -> None:
    """They would be averaged, and grow from round to round until they overflow."""
    judging, models = judge("algorithm.batchnorm_stats=recalibrate"), [vector(2, 1, 2), vector(1, 1001, 1e30)]
    lengths = judging.lengths([*models, vector(1, 3, 1)], START)
    assert judging.shortened(models[1], START, lengths).tolist() == [1, 11, 1]


def test_a_machine_alone_has_no_measure_and_of_two_the_shorter_is_it() -> None:
    judging = judge()
    assert judging.verdicts({PARAMETERS: [1e30]}, [0]) == []
    assert judging.verdicts({PARAMETERS: [10.0, 1.0]}, [0, 1]) == [Verdict(0, PARAMETERS, 10.0)]


def test_those_who_sent_nothing_are_no_measure() -> None:
    assert lower_median([0.0, 0.0, 0.0, 3.0, 4.0]) == 3.0
    assert lower_median([0.0, 0.0]) == 0.0
    assert judge().verdicts({PARAMETERS: [0.0, 0.0, 7.0]}, [0, 1, 2]) == []


@given(LENGTHS)
def test_at_least_half_are_never_too_long(lengths: list[float]) -> None:
    found = judge().verdicts({PARAMETERS: lengths}, list(range(len(lengths))))
    assert 2 * len(found) <= len(lengths)
    assert {verdict.part for verdict in found} == {
        part for part, length in enumerate(lengths) if length > 5 * lower_median(lengths) > 0
    }


@given(st.lists(st.lists(VALUES, min_size=3, max_size=3), min_size=3, max_size=6))
def test_what_is_shortened_is_as_long_as_allowed(rows: list[list[float]]) -> None:
    judging, models = judge(), [torch.tensor(row, dtype=torch.float32) for row in rows]
    lengths = judging.lengths(models, START)
    for model in models:
        after = judging.lengths([judging.shortened(model, START, lengths)], START)
        for name, (length,) in after.items():
            median = lower_median(lengths[name])
            assert not median or length <= 5 * median * (1 + 1e-5) + 1e-6
