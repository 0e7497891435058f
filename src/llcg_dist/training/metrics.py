"""Scores that are reported: accuracy, micro-averaged F1, area under the ROC curve."""

from collections.abc import Callable

import numpy as np
from torch import Tensor
from torch.nn import functional


def score(logits: Tensor, labels: Tensor, metric: str) -> float | None:
    """The metric over these nodes as a fraction in 0..1; None where they leave nothing to score, or no number."""
    if len(labels) == 0 or not bool(logits.isfinite().all()):
        return None
    return _METRICS[metric](logits, labels)


def _accuracy(logits: Tensor, labels: Tensor) -> float:
    return (logits.argmax(dim=1) == labels).double().mean().item()


def _f1_micro(logits: Tensor, labels: Tensor) -> float:
    """Over one label a node, micro-averaged F1 is accuracy; multi-label: a label is predicted where its logit > 0."""
    if labels.ndim == 1:
        return _accuracy(logits, labels)
    predicted, true = logits > 0, labels > 0.5
    hits = (predicted & true).sum().item()
    return 2 * hits / max(1, predicted.sum().item() + true.sum().item())


def _roc_auc(logits: Tensor, labels: Tensor) -> float | None:
    """As OGB's Evaluator has it: the mean over the labels that some of the nodes carry and some do not.

    One label a node: of two classes the area for the second (in order of the logits' difference, which is that of its
    probability), of more the mean of each class against the rest. None where no label divides the nodes.
    """
    from sklearn.metrics import roc_auc_score

    if labels.ndim == 1 and logits.shape[1] == 2:
        logits, labels = logits[:, 1:] - logits[:, :1], labels[:, None]
    elif labels.ndim == 1:
        logits, labels = logits.softmax(dim=1), functional.one_hot(labels, logits.shape[1])
    both = [c for c in range(labels.shape[1]) if 0 < labels[:, c].sum() < len(labels)]
    areas = [roc_auc_score(labels[:, c].numpy(), logits[:, c].numpy()) for c in both]
    return float(np.mean(areas)) if areas else None


_METRICS: dict[str, Callable[[Tensor, Tensor], float | None]] = {
    "accuracy": _accuracy,
    "f1_micro": _f1_micro,
    "roc_auc": _roc_auc,
}
