"""Scores of every class: numbers worked out by hand, and scikit-learn's on drawn ones."""

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import confusion_matrix, f1_score, precision_recall_fscore_support

from llcg_dist.training.class_scores import CONFUSED_PAIRS, MATRIX_CLASSES, class_results, class_scores
from tests.helpers.graphs import graph_of

NAMES = ["ant", "bee", "cow", "dog"]


def column(scores: dict[str, Any], key: str) -> list[Any]:
    return [row[key] for row in scores["classes"]]


def test_by_hand() -> None:
    """Two of three ants are found, a bee is taken for an ant; no cow is found, and there is no dog at all."""
    labels, predicted = np.array([0, 0, 0, 1, 1, 2]), np.array([0, 0, 1, 0, 1, 1])
    scores = class_scores(predicted, labels, NAMES)
    assert column(scores, "class") == NAMES
    assert column(scores, "precision") == [round(2 / 3, 6), round(1 / 3, 6), None, None]
    assert column(scores, "recall") == [round(2 / 3, 6), 0.5, 0.0, None]
    assert column(scores, "f1") == [round(2 / 3, 6), 0.4, 0.0, None]
    assert column(scores, "support") == [3, 2, 1, 0]
    assert column(scores, "predicted") == [3, 3, 0, 0]
    assert scores["confusion"] == [[2, 1, 0, 0], [1, 1, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0]]
    assert scores["nodes"] == 6
    assert scores["macro_f1"] == pytest.approx((2 / 3 + 0.4) / 3, abs=1e-6)


@pytest.mark.parametrize("several_labels", [False, True])
def test_as_scikit_learn_has_it(several_labels: bool) -> None:
    rng = np.random.default_rng(0)
    shape = (500, 4) if several_labels else (500,)
    labels, predicted = (rng.integers(2 if several_labels else 4, size=shape) for _ in range(2))
    found = predicted.astype(bool) if several_labels else predicted
    scores = class_scores(found, labels.astype(np.float32) if several_labels else labels, NAMES)
    for key, values in zip(
        ("precision", "recall", "f1", "support"), precision_recall_fscore_support(labels, predicted), strict=True
    ):
        assert column(scores, key) == pytest.approx(values.tolist(), abs=1e-6)
    assert scores["macro_f1"] == pytest.approx(f1_score(labels, predicted, average="macro"), abs=1e-6)
    if several_labels:
        outcomes = ("true_negatives", "false_positives", "false_negatives", "true_positives")
        for i, row in enumerate(scores["classes"]):
            assert [row[key] for key in outcomes] == confusion_matrix(labels[:, i], predicted[:, i]).ravel().tolist()
    else:
        assert scores["confusion"] == confusion_matrix(labels, predicted).tolist()


def test_of_very_many_classes_the_pairs_that_are_confused_most() -> None:
    number = MATRIX_CLASSES + 300
    labels = np.concatenate([np.arange(number), [7, 7, 7, 9, 9]])
    predicted = np.concatenate([(np.arange(number) + 1) % number, [3, 3, 3, 4, 4]])
    scores = class_scores(predicted, labels, [f"c{i}" for i in range(number)])
    assert "confusion" not in scores
    assert len(scores["most_confused"]) == CONFUSED_PAIRS
    assert scores["most_confused"][:2] == [
        {"class": "c7", "predicted_as": "c3", "nodes": 3},
        {"class": "c9", "predicted_as": "c4", "nodes": 2},
    ]


def test_validation_and_test_nodes_of_a_graph() -> None:
    """Splits of graph_of: train, train, val, test in turn; classes 0 and 1 in turn."""
    graph = graph_of([(0, 1), (2, 3)], 8)
    logits = torch.tensor([[0.0, 1.0]]).repeat(8, 1)
    results = class_results(logits, graph)
    assert results["task"] == "multiclass"
    assert results["val"]["confusion"] == [[0, 2], [0, 0]]
    assert results["test"]["confusion"] == [[0, 0], [0, 2]]
    assert column(results["val"], "class") == ["0", "1"]
    logits[3] = float("nan")
    assert class_results(logits, graph)["test"] is None
    assert class_results(logits, graph_of([(0, 1)], 2, split=np.array([1, 1], np.int8)))["val"] is None
