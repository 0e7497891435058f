"""The server's step along the machines' average, by hand and against torch's own optimisers."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from llcg_dist.config.algorithm import AlgorithmConfig, ServerOptimizer
from llcg_dist.training.outer_optimizer import OuterOptimizer, outer_optimizer

KINDS = ("plain", "momentum", "nesterov", "adam")
STATISTICS = torch.tensor([False, False, False, True])
"""Three parameters and one running statistic."""


def optimizer(kind: str, **settings: Any) -> OuterOptimizer:
    return outer_optimizer(AlgorithmConfig("llcg", server_optimizer=ServerOptimizer(kind), **settings))


def run_rounds(outer: OuterOptimizer, rounds: int, theta: Tensor | None = None, first: int = 0) -> Tensor:
    """Rounds whose machines end at a random place near theta."""
    theta = torch.zeros(4) if theta is None else theta
    for round_ in range(first, first + rounds):
        drift = torch.randn(4, generator=torch.Generator().manual_seed(round_))
        theta = outer.step(theta, theta + drift, STATISTICS)
    return theta


def test_plain_is_the_average_itself() -> None:
    theta, average = torch.rand(4), torch.rand(4)
    assert optimizer("plain").step(theta, average, STATISTICS) is average
    assert optimizer("plain").state() == {}


def test_momentum_by_hand() -> None:
    """Gradients 1 and then 2 with beta 0.5 and steps of 0.1: momenta 1 and 2.5."""
    outer = optimizer("momentum", server_step=0.1, server_momentum=0.5)
    first = outer.step(torch.zeros(4), torch.full((4,), -1.0), STATISTICS)
    torch.testing.assert_close(first, torch.tensor([-0.1, -0.1, -0.1, -1.0]))
    second = outer.step(first, first - 2, STATISTICS)
    torch.testing.assert_close(second, torch.tensor([-0.35, -0.35, -0.35, -3.0]))


def test_nesterov_by_hand() -> None:
    """Gradients 1 and 2: directions 1 + 0.5·1 and 2 + 0.5·2.5."""
    outer = optimizer("nesterov", server_step=0.1, server_momentum=0.5)
    first = outer.step(torch.zeros(4), torch.full((4,), -1.0), STATISTICS)
    torch.testing.assert_close(first, torch.tensor([-0.15, -0.15, -0.15, -1.0]))
    second = outer.step(first, first - 2, STATISTICS)
    torch.testing.assert_close(second, torch.tensor([-0.475, -0.475, -0.475, -3.0]))


def test_adam_by_hand() -> None:
    """Gradient 2: mean 0.1·2, square 0.01·4, step 0.5·0.2 / (0.2 + 0.001)."""
    outer = optimizer("adam", server_step=0.5)
    found = outer.step(torch.ones(4), torch.full((4,), -1.0), STATISTICS)
    expected = 1 - 0.5 * 0.2 / (math.sqrt(0.04) + 1e-3)
    torch.testing.assert_close(found, torch.tensor([expected] * 3 + [-1.0]))


@pytest.mark.parametrize("kind", ["momentum", "nesterov"])
def test_momentum_is_what_torch_calls_so(kind: str) -> None:
    outer, theta = optimizer(kind, server_step=0.3, server_momentum=0.8), torch.zeros(4)
    beside = torch.zeros(4, requires_grad=True)
    sgd = torch.optim.SGD([beside], lr=0.3, momentum=0.8, nesterov=kind == "nesterov")
    for round_ in range(5):
        gradient = torch.randn(4, generator=torch.Generator().manual_seed(round_))
        theta = outer.step(theta, theta - gradient, STATISTICS)
        beside.grad = gradient
        sgd.step()
        torch.testing.assert_close(theta[:3], beside.detach()[:3])


@pytest.mark.parametrize("kind", ["momentum", "nesterov"])
def test_without_memory_a_whole_step_leads_to_the_average(kind: str) -> None:
    theta, average = torch.rand(4), torch.rand(4)
    torch.testing.assert_close(optimizer(kind, server_momentum=0.0).step(theta, average, STATISTICS), average)


@pytest.mark.parametrize("kind", KINDS)
def test_statistics_take_the_averages_values(kind: str) -> None:
    outer, theta = optimizer(kind), torch.zeros(4)
    for value in (3.0, -1.0, 0.5):
        theta = outer.step(theta, torch.full((4,), value), STATISTICS)
        assert theta[3] == value


@pytest.mark.parametrize("kind", KINDS)
def test_saved_and_loaded_it_goes_on_to_the_last_bit(kind: str) -> None:
    undisturbed = run_rounds(optimizer(kind), 6)
    outer = optimizer(kind)
    half = run_rounds(outer, 3)
    state = outer.state()
    run_rounds(outer, 3, half, first=3)  # what runs on must not reach what was saved
    again = optimizer(kind)
    again.load_state(state, 4)
    assert torch.equal(run_rounds(again, 3, half, first=3), undisturbed)


@pytest.mark.parametrize("kind", KINDS)
def test_its_arguments_are_left_as_they_were(kind: str) -> None:
    theta, average = torch.rand(4), torch.rand(4)
    before = theta.clone(), average.clone()
    optimizer(kind).step(theta, average, STATISTICS)
    assert torch.equal(theta, before[0])
    assert torch.equal(average, before[1])


def test_a_state_of_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match=r"momentum\[5\] for a model of 4"):
        optimizer("momentum").load_state({"momentum": torch.zeros(5)}, 4)
    with pytest.raises(KeyError):
        optimizer("adam").load_state({"mean": torch.zeros(4)}, 4)
