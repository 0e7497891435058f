"""The training loss, and its logit adjustment for machines whose labels are skewed."""

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
    """[C] float32: the logit adjustment of train.local_loss=calibrated, which a machine adds to its logits in its loss.

    `local` and `everywhere` [C] are the class shares of the machine's `num_local` training nodes and of the full graph.
    By Bayes' rule the class odds among the local nodes are those of the full graph times the ratio of the shares. The
    ratio is added to the logits, so that the logits themselves learn the odds of the full graph.
    Multiclass: log(local / everywhere). Multilabel: the difference of the log-odds of the two positive rates. To stay
    finite where a class is missing locally, a machine counts one more node, distributed over the classes as in the full
    graph. A class that no node (or, as a label, every node) has is not adjusted. Equal shares give exact zeros.
    """

    def log_ratio(local_share: Tensor, global_share: Tensor) -> Tensor:
        return ((num_local * (local_share / global_share) + 1) / (num_local + 1)).log()

    shift, informative = log_ratio(local, everywhere), everywhere > 0
    if task == "multilabel":
        shift, informative = shift - log_ratio(1 - local, 1 - everywhere), informative & (everywhere < 1)
    return torch.where(informative, shift, 0.0).float()
