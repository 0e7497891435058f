"""Averaging by hand-computed numbers."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from llcg_dist.config.algorithm import Averaging
from llcg_dist.training.average import averaging_weights, weighted_average

floats = st.floats(width=32, allow_nan=False, allow_infinity=False)


def bits(tensor: Tensor) -> list[int]:
    """Tells -0.0 from 0.0."""
    return tensor.view(torch.int32).tolist()


def test_uniform_by_hand() -> None:
    updates = [torch.tensor([1.0, -2.0, 0.0]), torch.tensor([3.0, 4.0, 0.5]), torch.tensor([2.0, 1.0, 1.0])]
    assert weighted_average(updates, [1.0, 1.0, 1.0]).tolist() == [2.0, 1.0, 0.5]


def test_unequal_parts_by_hand() -> None:
    """Parts of 10, 30 and 60 training nodes: 0.1·1 + 0.3·2 + 0.6·4 = 3.1."""
    updates = [torch.tensor([1.0, 10.0]), torch.tensor([2.0, -10.0]), torch.tensor([4.0, 5.0])]
    average = weighted_average(updates, averaging_weights(Averaging.train_nodes, [10, 30, 60]))
    assert average.dtype == torch.float32
    assert average.tolist() == pytest.approx([3.1, 1.0], rel=1e-7)


def test_weights_of_the_two_ways() -> None:
    assert averaging_weights(Averaging.uniform, [10, 30, 60]) == [1.0, 1.0, 1.0]
    assert averaging_weights(Averaging.train_nodes, [10, 30, 60]) == [10.0, 30.0, 60.0]


def test_sums_are_taken_in_double() -> None:
    """In single precision 2^24 + 1 would lose the one."""
    updates = [torch.tensor([2.0**24]), torch.tensor([1.0]), torch.tensor([-(2.0**24)])]
    assert weighted_average(updates, [1.0] * 3).item() == pytest.approx(1 / 3, rel=1e-7)


@given(st.lists(floats, min_size=1, max_size=20), st.integers(1, 10**6))
def test_one_machine_keeps_its_bits(values: list[float], train_nodes: int) -> None:
    theta = torch.tensor([*values, -0.0, 0.0, 1e-45])
    assert bits(weighted_average([theta], [float(train_nodes)])) == bits(theta)


@given(st.lists(floats, min_size=1, max_size=20), st.lists(st.integers(1, 10**6), min_size=1, max_size=16))
def test_machines_that_agree_keep_their_bits(values: list[float], train_nodes: list[int]) -> None:
    theta = torch.tensor([*values, -0.0, 0.0])
    weights = averaging_weights(Averaging.train_nodes, train_nodes)
    assert bits(weighted_average([theta] * len(weights), weights)) == bits(theta)


@given(st.integers(2, 16), st.integers(0, 1000))
def test_same_order_same_bits_and_the_inputs_stay(machines: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    updates = [torch.randn(50, generator=generator) for _ in range(machines)]
    before = [update.clone() for update in updates]
    weights = [float(p + 1) for p in range(machines)]
    first, second = weighted_average(updates, weights), weighted_average(updates, weights)
    assert bits(first) == bits(second)
    assert all(torch.equal(a, b) for a, b in zip(updates, before, strict=True))
    expected = sum(w * u.double() for w, u in zip(weights, updates, strict=True)) / sum(weights)
    torch.testing.assert_close(first.double(), expected, rtol=1e-6, atol=1e-7)


def test_a_missing_update_is_not_ignored() -> None:
    with pytest.raises(ValueError, match="zip"):
        weighted_average([torch.zeros(2), torch.zeros(2)], [1.0, 1.0, 1.0])
