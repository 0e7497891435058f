"""Scores by hand and against scikit-learn; test_metrics.py has OGB's, several classes and losses."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score
from torch import Tensor

from llcg_dist.training.metrics import score

seeds = st.integers(0, 10**6)


def drawn(seed: int, nodes: int, classes: int) -> tuple[Tensor, Tensor, Tensor]:
    """Logits with some ties, one class a node, several labels a node."""
    rng = np.random.default_rng(seed)
    logits = torch.from_numpy(np.round(rng.standard_normal((nodes, classes)), 1).astype(np.float32))
    multi = torch.from_numpy((rng.random((nodes, classes)) < rng.random(classes)).astype(np.float32))
    return logits, torch.from_numpy(rng.integers(classes, size=nodes)), multi


def test_accuracy_by_hand() -> None:
    logits = torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 1.0], [0.0, 3.0]])
    assert score(logits, torch.tensor([0, 1, 1, 1]), "accuracy") == 0.75


@given(seeds, st.integers(1, 50), st.integers(2, 6))
def test_accuracy_and_f1_of_one_class_a_node(seed: int, nodes: int, classes: int) -> None:
    logits, labels, _ = drawn(seed, nodes, classes)
    predicted = logits.numpy().argmax(axis=1)
    assert score(logits, labels, "accuracy") == pytest.approx(accuracy_score(labels, predicted))
    assert score(logits, labels, "f1_micro") == pytest.approx(f1_score(labels, predicted, average="micro"))


@given(seeds, st.integers(1, 50), st.integers(2, 6))
def test_f1_of_several_labels_a_node(seed: int, nodes: int, classes: int) -> None:
    logits, _, labels = drawn(seed, nodes, classes)
    expected = f1_score(labels.numpy(), (logits > 0).numpy(), average="micro", zero_division=0)
    assert score(logits, labels, "f1_micro") == pytest.approx(expected)


def test_roc_auc_of_two_classes_by_hand() -> None:
    # Margins of class 1: -1, 0.5, 2, 1; positives are nodes 1 and 2: pairs (1,0), (2,0), (2,3) of four are in order.
    logits = torch.tensor([[1.0, 0.0], [0.0, 0.5], [0.0, 2.0], [1.0, 2.0]])
    assert score(logits, torch.tensor([0, 1, 1, 0]), "roc_auc") == 0.75


@pytest.mark.parametrize("metric", ["accuracy", "f1_micro", "roc_auc"])
def test_no_nodes_no_score(metric: str) -> None:
    assert score(torch.zeros(0, 3), torch.zeros(0, dtype=torch.int64), metric) is None


@pytest.mark.parametrize("metric", ["f1_micro", "roc_auc"])
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_model_that_diverged_has_no_score(metric: str, value: float) -> None:
    """A run whose weights became NaN must end in its records (null), not in a traceback of the metric."""
    labels = torch.tensor([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    logits = torch.zeros(3, 2)
    logits[1, 1] = value
    assert score(logits, labels, metric) is None
    assert score(logits, torch.tensor([0, 1, 1]), metric) is None
    assert score(logits, torch.tensor([0, 1, 1]), "accuracy") is None
