"""Precision, recall, F1 and support of every class, and the confusion matrix, of a model's predictions."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from llcg_dist.data.graph import TEST, VAL, Graph
from llcg_dist.data.rows import Array
from llcg_dist.training.predictions import predictions

MATRIX_CLASSES = 100
"""Up to so many classes the confusion matrix is kept whole; of more, the pairs that are confused most."""
CONFUSED_PAIRS = 200


def class_results(logits: Tensor, graph: Graph) -> dict[str, Any]:
    """The scores of every class on the validation and on the test nodes, from logits [N, C] of a whole graph.

    None for a split without nodes, or whose logits are not finite.
    """
    names = [str(name) for name in graph.names.get("class", np.arange(graph.num_classes))]
    results: dict[str, Any] = {"task": graph.task}
    for key, split in (("val", VAL), ("test", TEST)):
        nodes = graph.nodes_in(split)
        predicted = predictions(logits, graph.task != "multiclass", torch.from_numpy(nodes))
        results[key] = class_scores(predicted.numpy(), graph.labels[nodes], names) if predicted is not None else None
    return results


def class_scores(predicted: Array, labels: Array, names: list[str]) -> dict[str, Any]:
    """The scores of every class over some nodes; a ratio without a denominator is None.

    Several classes: `predicted` and `labels` are classes [n]; the result has a confusion matrix, a row per true class
    and a column per predicted one. Several labels a node: both are 0 or 1 [n, C]; every label counts its four outcomes.
    """
    several_labels = labels.ndim == 2
    if several_labels:
        labels = labels > 0.5
        hits, support, positive = (predicted & labels).sum(axis=0), labels.sum(axis=0), predicted.sum(axis=0)
    else:
        hits = np.bincount(labels[predicted == labels], minlength=len(names))
        support, positive = (np.bincount(values, minlength=len(names)) for values in (labels, predicted))
    rows: list[dict[str, Any]] = []
    for name, hit, true, found in zip(names, hits.tolist(), support.tolist(), positive.tolist(), strict=True):
        row = {"class": name, "precision": _ratio(hit, found), "recall": _ratio(hit, true)}
        row |= {"f1": _ratio(2 * hit, true + found), "support": true, "predicted": found}
        if several_labels:
            row |= {"true_positives": hit, "false_positives": found - hit, "false_negatives": true - hit}
            row["true_negatives"] = len(labels) - true - found + hit
        rows.append(row)
    f1 = [row["f1"] for row in rows if row["f1"] is not None]
    result = {"nodes": len(labels), "macro_f1": _ratio(sum(f1), len(f1)), "classes": rows}
    return result if several_labels else result | _confusion(predicted, labels, names)


def _confusion(predicted: Array, labels: Array, names: list[str]) -> dict[str, Any]:
    """The confusion matrix; with very many classes, the largest of its entries off the diagonal."""
    if len(names) <= MATRIX_CLASSES:
        # Not sklearn's: every run would import it at its end, which takes a second and 50 MB.
        cells = np.bincount(labels * len(names) + predicted, minlength=len(names) ** 2)
        return {"confusion": cells.reshape(len(names), len(names)).tolist()}
    wrong = predicted != labels
    pairs, counts = np.unique(labels[wrong] * len(names) + predicted[wrong], return_counts=True)
    largest = np.argsort(-counts, kind="stable")[:CONFUSED_PAIRS]
    true, found = np.divmod(pairs[largest], len(names))
    entries = zip(true.tolist(), found.tolist(), counts[largest].tolist(), strict=True)
    return {"most_confused": [{"class": names[t], "predicted_as": names[f], "nodes": n} for t, f, n in entries]}


def _ratio(part: float, whole: float) -> float | None:
    return round(part / whole, 6) if whole else None
