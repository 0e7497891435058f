"""The loss, and what calibration adds to a machine's logits so that it does not unlearn classes that it never sees."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from llcg_dist.training.loss import calibration, class_shares, loss


def test_losses_by_hand() -> None:
    logits = torch.tensor([[0.0, np.log(3.0)], [0.0, 0.0]])
    assert loss(logits, torch.tensor([1, 0]), "multiclass").item() == pytest.approx((np.log(4 / 3) + np.log(2)) / 2)
    labels = torch.tensor([[1.0, 1.0], [0.0, 1.0]])
    expected = (np.log(2) + np.log(4 / 3) + np.log(2) + np.log(2)) / 4  # mean over nodes and labels
    assert loss(logits, labels, "multilabel").item() == pytest.approx(expected)


TASKS = ("multiclass", "multilabel")


def shares(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


@st.composite
def parts(draw: st.DrawFn) -> tuple[Tensor, Tensor, int]:
    """(labels of all, labels of one machine, number of classes); the machine's are among all."""
    classes = draw(st.integers(2, 6))
    everywhere = draw(st.lists(st.integers(0, classes - 1), min_size=1, max_size=60))
    own = draw(st.integers(1, len(everywhere)))
    return torch.tensor(everywhere), torch.tensor(everywhere[:own]), classes


def labels_for(task: str, labels: Tensor, classes: int) -> Tensor:
    return functional.one_hot(labels, classes).float() if task == "multilabel" else labels


def test_shares_by_hand() -> None:
    assert class_shares(torch.tensor([0, 2, 2, 2]), 4).tolist() == [0.25, 0, 0.75, 0]
    assert class_shares(torch.tensor([[1.0, 0.0], [1.0, 1.0]]), 2).tolist() == [1.0, 0.5]


def test_multiclass_by_hand() -> None:
    """Nine nodes, 6 and 3 of two classes and none of the third; everywhere 1/2, 1/4, 1/4. With a node that is of every
    class by its share everywhere: 6.5, 3.25 and 0.25 of ten."""
    found = calibration(shares(6 / 9, 3 / 9, 0), shares(0.5, 0.25, 0.25), 9, "multiclass")
    expected = [math.log(0.65 / 0.5), math.log(0.325 / 0.25), math.log(0.025 / 0.25)]
    torch.testing.assert_close(found, torch.tensor(expected))


def test_multilabel_by_hand() -> None:
    """Positive rate 0 of nine nodes against 1/4 everywhere: with the added node 0.025, in log-odds."""
    found = calibration(shares(0), shares(0.25), 9, "multilabel")
    torch.testing.assert_close(found, torch.tensor([math.log(0.025 / 0.975) - math.log(0.25 / 0.75)]))


@pytest.mark.parametrize("task", TASKS)
@given(parts())
def test_it_is_finite_and_has_the_sign_of_the_difference(task: str, drawn: tuple[Tensor, Tensor, int]) -> None:
    everywhere, own, classes = drawn
    there = class_shares(labels_for(task, everywhere, classes), classes)
    here = class_shares(labels_for(task, own, classes), classes)
    found = calibration(here, there, len(own), task)
    assert found.dtype == torch.float32
    assert bool(found.isfinite().all())
    assert bool(((found > 1e-6) <= (here > there)).all())
    assert bool(((found < -1e-6) <= (here < there)).all())


@pytest.mark.parametrize("task", TASKS)
@given(parts())
def test_a_machine_that_sees_everything_adds_nothing(task: str, drawn: tuple[Tensor, Tensor, int]) -> None:
    labels, _, classes = drawn
    same = class_shares(labels_for(task, labels, classes), classes)
    assert calibration(same, same.clone(), len(labels), task).tolist() == [0.0] * classes


@pytest.mark.parametrize("task", TASKS)
def test_a_class_that_tells_nothing_is_left_alone(task: str) -> None:
    """Nobody has the first; everybody has the second."""
    found = calibration(shares(0, 1), shares(0, 1), 5, task)
    assert found.tolist() == [0.0, 0.0]


def test_the_model_of_the_full_graph_is_the_minimum_of_every_calibrated_loss() -> None:
    """Nodes that look alike, 3 : 1 of two classes everywhere, 1 : 1 at a machine: the calibrated loss is least at the
    logits of 3 : 1, the plain one at those of 1 : 1. (A machine so large that the added node does not show.)"""
    here, there, many = shares(0.5, 0.5), shares(0.75, 0.25), 10**9
    shift = calibration(here, there, many, "multiclass")
    labels = torch.tensor([0, 1])

    def gradient(odds: float, shift: Tensor) -> Tensor:
        logits = torch.tensor([[math.log(odds), 0.0]] * 2, requires_grad=True)
        loss(logits + shift, labels, "multiclass").backward()
        assert logits.grad is not None
        return logits.grad.sum(dim=0)

    torch.testing.assert_close(gradient(3.0, shift), torch.zeros(2), atol=1e-6, rtol=0)
    torch.testing.assert_close(gradient(1.0, torch.zeros(2)), torch.zeros(2), atol=1e-6, rtol=0)
    assert gradient(3.0, torch.zeros(2)).abs().max() > 0.1


def test_a_missing_class_is_hardly_pushed_away() -> None:
    """The gradient on the logit of a class that the machine does not have: its share of the added node."""
    labels, logits = torch.zeros(50, dtype=torch.int64), torch.zeros(50, 4)
    there = shares(0.25, 0.25, 0.25, 0.25)
    shift = calibration(class_shares(labels, 4), there, 50, "multiclass")

    def push(shift: Tensor) -> float:
        probability = (logits + shift).softmax(dim=1)
        return probability[:, 1].mean().item()

    assert push(torch.zeros(4)) == pytest.approx(0.25)
    assert push(shift) == pytest.approx(0.25 / 51, rel=1e-4)
