"""Scores by hand and against the libraries that define them: ogb and scikit-learn."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from ogb.nodeproppred import Evaluator
from sklearn.metrics import accuracy_score, f1_score, roc_auc_score

from llcg_dist.training.metrics import score

PROTEINS = Evaluator("ogbn-proteins")


def drawn(num_nodes: int, num_classes: int, seed: int, multilabel: bool) -> tuple[torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(seed)
    logits = torch.from_numpy(rng.standard_normal((num_nodes, num_classes), dtype=np.float32).round(1))  # with ties
    if multilabel:
        often = rng.random(num_classes) ** 4  # some labels are so rare that no node, or every node, carries them
        return logits, torch.from_numpy((rng.random((num_nodes, num_classes)) < often).astype(np.float32))
    return logits, torch.from_numpy(rng.integers(num_classes, size=num_nodes))


@settings(max_examples=10, deadline=None)
@given(st.integers(2, 60), st.integers(0, 1000))
def test_roc_auc_of_many_labels_is_that_of_ogb_for_proteins(num_nodes: int, seed: int) -> None:
    logits, labels = drawn(num_nodes, 112, seed, multilabel=True)
    expected = PROTEINS.eval({"y_true": labels.numpy(), "y_pred": logits.numpy()})["rocauc"]
    assert score(logits, labels, "roc_auc") == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", ["ogbn-arxiv", "ogbn-products"])
def test_accuracy_is_that_of_ogb(name: str) -> None:
    logits, labels = drawn(500, 40, 0, multilabel=False)
    predicted = logits.argmax(dim=1, keepdim=True)
    expected = Evaluator(name).eval({"y_true": labels[:, None].numpy(), "y_pred": predicted.numpy()})["acc"]
    assert score(logits, labels, "accuracy") == pytest.approx(expected, abs=1e-12)
    assert score(logits, labels, "f1_micro") == pytest.approx(expected, abs=1e-12)


@settings(max_examples=25, deadline=None)
@given(st.integers(10, 80), st.integers(0, 1000))
def test_roc_auc_of_two_classes_is_that_of_sklearn(num_nodes: int, seed: int) -> None:
    logits, labels = drawn(num_nodes, 2, seed, multilabel=False)
    labels[0], labels[1] = 0, 1
    expected = roc_auc_score(labels, logits[:, 1] - logits[:, 0])
    assert score(logits, labels, "roc_auc") == pytest.approx(expected, abs=1e-12)
    # ties aside, the probability of the second class orders the nodes the same way
    distinct = logits + torch.linspace(0, 0.04, num_nodes)[:, None] * torch.tensor([0.0, 1.0])
    probability = distinct.double().softmax(dim=1)[:, 1]
    assert score(distinct, labels, "roc_auc") == pytest.approx(roc_auc_score(labels, probability), abs=1e-12)


@settings(max_examples=25, deadline=None)
@given(st.integers(10, 80), st.integers(0, 1000))
def test_roc_auc_of_more_classes_is_sklearns_one_against_the_rest(num_nodes: int, seed: int) -> None:
    logits, labels = drawn(num_nodes, 4, seed, multilabel=False)
    labels[:4] = torch.arange(4)
    expected = roc_auc_score(labels, logits.double().softmax(dim=1), multi_class="ovr", average="macro")
    assert score(logits, labels, "roc_auc") == pytest.approx(expected, abs=1e-12)


def test_roc_auc_tells_sure_nodes_from_surer_ones() -> None:
    """In float32 each of these probabilities is 1: the wrong node, the least sure of class 0, would tie with the right
    ones."""
    logits = torch.tensor([[20.0, 0.0, 0.0], [25.0, 0.0, 0.0], [18.0, 0.0, 0.0], [0.0, 20.0, 0.0], [0.0, 0.0, 20.0]])
    labels = torch.tensor([0, 0, 1, 1, 2])
    assert (logits.softmax(dim=1)[:3, 0] == 1).all()
    # Each class has its own nodes before all others: node 2 has the highest probability of class 1 after node 3.
    assert score(logits, labels, "roc_auc") == 1.0


@pytest.mark.parametrize("multilabel", [False, True])
def test_f1_micro_is_that_of_sklearn(multilabel: bool) -> None:
    logits, labels = drawn(200, 12, 3, multilabel)
    predicted = (logits > 0) if multilabel else logits.argmax(dim=1)
    expected = f1_score(labels, predicted, average="micro")
    assert score(logits, labels, "f1_micro") == pytest.approx(expected, abs=1e-12)


def test_nothing_to_score_is_none() -> None:
    assert score(torch.zeros(0, 2), torch.zeros(0, dtype=torch.int64), "accuracy") is None
    assert score(torch.randn(5, 2), torch.ones(5, dtype=torch.int64), "roc_auc") is None  # one class only
    assert score(torch.randn(5, 3), torch.ones(5, 3), "roc_auc") is None


def test_accuracy_by_hand() -> None:
    logits = torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 1.0], [0.0, 3.0]])
    assert score(logits, torch.tensor([0, 1, 1, 1]), "accuracy") == 0.75


@given(st.integers(1, 50), st.integers(2, 6), st.integers(0, 10**6))
def test_accuracy_and_f1_of_one_class_a_node(num_nodes: int, num_classes: int, seed: int) -> None:
    logits, labels = drawn(num_nodes, num_classes, seed, multilabel=False)
    predicted = logits.numpy().argmax(axis=1)
    assert score(logits, labels, "accuracy") == pytest.approx(accuracy_score(labels, predicted))
    assert score(logits, labels, "f1_micro") == pytest.approx(f1_score(labels, predicted, average="micro"))


@given(st.integers(1, 50), st.integers(2, 6), st.integers(0, 10**6))
def test_f1_of_several_labels_a_node(num_nodes: int, num_classes: int, seed: int) -> None:
    logits, labels = drawn(num_nodes, num_classes, seed, multilabel=True)
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
