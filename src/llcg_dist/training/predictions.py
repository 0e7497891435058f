"""What a model predicts, from logits that may be larger than memory: a piece of the nodes at a time."""

from collections.abc import Iterator

import torch
from torch import Tensor

from llcg_dist.data.rows import slices

_VALUES_AT_ONCE = 1 << 24
"""Logits that are copied at a time: 64 MB."""


def predictions(logits: Tensor, several_labels: bool, nodes: Tensor | None = None) -> Tensor | None:
    """Of these rows of the logits [N, C] (None: all): classes [n], or where a node has several labels [n, C] booleans,
    those with a logit above 0. None where there is no node, or a logit that is not finite."""
    found = list[Tensor]()
    for rows in pieces(logits, nodes):
        if not bool(rows.isfinite().all()):
            return None
        found.append(rows > 0 if several_labels else rows.argmax(dim=1))
    return torch.cat(found) if found else None


def most_probable(logits: Tensor) -> tuple[Tensor, Tensor]:
    """(class, its probability) of every node, from logits [N, C]."""
    found = [rows.softmax(dim=1).max(dim=1) for rows in pieces(logits)]
    return torch.cat([best.indices for best in found]), torch.cat([best.values for best in found])


def pieces(logits: Tensor, nodes: Tensor | None = None) -> Iterator[Tensor]:
    """These rows of the logits (None: all), in order."""
    at_once = max(1, _VALUES_AT_ONCE // logits.shape[1])
    for piece in slices(len(logits if nodes is None else nodes), at_once):
        yield logits[piece] if nodes is None else logits[nodes[piece]]
