"""ReLU and dropout in one: shares, scale, gradient, and the same bits for the same seed."""

import pytest
import torch

from llcg_dist.models.dropout import relu_dropout
from tests.helpers.plain_layers import relu_dropout_reference


@pytest.mark.parametrize("share", [0.1, 0.5, 0.75])
def test_the_share_that_is_dropped_and_the_scale_of_the_rest(share: float) -> None:
    torch.manual_seed(0)
    found = relu_dropout(torch.ones(999, 301), share)
    values = found.unique()
    assert values.tolist() == [0.0, pytest.approx(1 / (1 - share), rel=1e-4)]
    assert (found == 0).double().mean().item() == pytest.approx(
        share, abs=5 * (share * (1 - share) / found.numel()) ** 0.5
    )
    assert found.mean().item() == pytest.approx(1, abs=0.02)


def test_entries_are_dropped_independently_of_their_neighbours() -> None:
    """Four entries share one draw of 64 bits."""
    torch.manual_seed(1)
    kept = (relu_dropout(torch.ones(40_000, 4), 0.5) > 0).double()
    assert torch.corrcoef(kept.T).fill_diagonal_(0).abs().max() < 5 / 40_000**0.5


def test_negative_entries_are_zero_and_the_input_stays() -> None:
    x = torch.tensor([[-1.0, 2.0], [3.0, -4.0]])
    assert (relu_dropout(x, 0.5)[x < 0] == 0).all()
    assert x.tolist() == [[-1, 2], [3, -4]]


def test_the_gradient_goes_where_something_is_left() -> None:
    torch.manual_seed(2)
    x = torch.randn(50, 7, requires_grad=True)
    found = relu_dropout(x, 0.25)
    weights = torch.randn(50, 7)
    (found * weights).sum().backward()
    assert x.grad is not None
    torch.testing.assert_close(x.grad, torch.where(found > 0, weights / 0.75, 0.0))


def test_the_same_seed_gives_the_same_bits() -> None:
    found = []
    for _ in range(2):
        torch.manual_seed(3)
        found.append(relu_dropout(torch.ones(31, 5), 0.5))
    assert torch.equal(*found)


@pytest.mark.parametrize("probability", [0.25, 0.5, 0.9999999])
def test_output_and_gradient_are_those_of_the_reference(probability: float) -> None:
    outputs, gradients = [], []
    for function in (relu_dropout, relu_dropout_reference):
        torch.manual_seed(4)
        x = torch.randn(50, 7, requires_grad=True)
        weights = torch.randn(50, 7)
        outputs.append(function(x, probability))
        gradients.append(torch.autograd.grad((outputs[-1] * weights).sum(), x)[0])
    torch.testing.assert_close(*outputs)
    torch.testing.assert_close(*gradients)
