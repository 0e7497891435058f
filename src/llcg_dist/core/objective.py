"""What is minimised and what is reported."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional


def loss(logits: Tensor, labels: Tensor, task: str) -> Tensor:
    """Mean cross entropy over nodes (multiclass), or mean binary cross entropy over nodes and labels (multilabel)."""
    if task == "multilabel":
        return functional.binary_cross_entropy_with_logits(logits, labels)
    return functional.cross_entropy(logits, labels)


def class_shares(labels: Tensor, num_classes: int) -> Tensor:
    """[C] float64: the share of nodes that is of each class (labels [n]) or carries each label (labels [n, C])."""
    if labels.ndim == 1:
        return torch.bincount(labels, minlength=num_classes).double() / max(1, len(labels))
    return (labels > 0.5).double().sum(dim=0) / max(1, len(labels))


def calibration(local: Tensor, everywhere: Tensor, num_local: int, task: str) -> Tensor:
    """[C] float32: what a machine adds to its logits in its loss, so that they stay those of the whole graph.

    By Bayes' rule the odds that `num_local` nodes with the class shares `local` show are those of the whole graph times
    the ratio of the shares; the model shall learn the latter, so the ratio is put in beside it (logit adjustment).
    Multiclass: log(local / everywhere). Multilabel: the difference of the log-odds of the two positive rates. To be
    finite where a class is missing, a machine counts one more node, which is of every class by its share everywhere; a
    class that nobody (or, as a label, everybody) has is left alone. Equal shares give zeros, to the last bit.
    """

    def log_ratio(here: Tensor, there: Tensor) -> Tensor:
        return ((num_local * (here / there) + 1) / (num_local + 1)).log()

    shift, tells = log_ratio(local, everywhere), everywhere > 0
    if task == "multilabel":
        shift, tells = shift - log_ratio(1 - local, 1 - everywhere), tells & (everywhere < 1)
    return torch.where(tells, shift, 0.0).float()


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
