"""The loss that is minimised, and its calibration against skewed labels."""

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
