"""Evaluation metrics: accuracy, micro-averaged F1, area under the ROC curve."""

from collections.abc import Callable

import numpy as np
from torch import Tensor
from torch.nn import functional

from llcg_dist.training.predictions import predictions

_ROC_AUC = "roc_auc"


def score(logits: Tensor, labels: Tensor, metric: str, nodes: Tensor | None = None) -> float | None:
    """The metric over some nodes as a fraction in 0..1: those of all rows of the logits, or of the rows `nodes` [n],
    whose labels are given in that order.

    None where it is undefined: no nodes, logits that are not finite, or (roc_auc) no label that divides the nodes.
    """
    if metric == _ROC_AUC:
        return _roc_auc(logits if nodes is None else logits[nodes], labels)
    predicted = predictions(logits, labels.ndim == 2, nodes)
    return None if predicted is None else _METRICS[metric](predicted, labels)


def _accuracy(predicted: Tensor, labels: Tensor) -> float:
    return (predicted == labels).double().mean().item()


def _f1_micro(predicted: Tensor, labels: Tensor) -> float:
    """Micro-averaged F1. Multiclass: equal to accuracy."""
    if labels.ndim == 1:
        return _accuracy(predicted, labels)
    true = labels > 0.5
    hits = (predicted & true).sum().item()
    return 2 * hits / max(1, predicted.sum().item() + true.sum().item())


def _roc_auc(logits: Tensor, labels: Tensor) -> float | None:
    """As in OGB's Evaluator: the mean over the labels that some of the nodes have and some do not.

    Multiclass with two classes: the area of the second class, with nodes ranked by the difference of the logits (the
    same ranking as by its probability). With more classes: the mean over one-versus-rest areas, of probabilities in
    float64: in float32 those of all sure nodes are 1, and tie.
    """
    from sklearn.metrics import roc_auc_score

    if len(labels) == 0 or not bool(logits.isfinite().all()):
        return None
    if labels.ndim == 1 and logits.shape[1] == 2:
        logits, labels = logits[:, 1:] - logits[:, :1], labels[:, None]
    elif labels.ndim == 1:
        logits, labels = logits.double().softmax(dim=1), functional.one_hot(labels, logits.shape[1])
    divided = [c for c in range(labels.shape[1]) if 0 < labels[:, c].sum() < len(labels)]
    areas = [roc_auc_score(labels[:, c].numpy(), logits[:, c].numpy()) for c in divided]
    return float(np.mean(areas)) if areas else None


_METRICS: dict[str, Callable[[Tensor, Tensor], float]] = {"accuracy": _accuracy, "f1_micro": _f1_micro}
