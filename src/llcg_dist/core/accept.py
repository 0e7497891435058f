"""Updates are checked before they are averaged: one machine's NaN would poison the model of all."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Accepted:
    thetas: list[Tensor]
    weights: list[float]
    skipped: list[int]
    """Parts whose update was not finite."""


def accept(thetas: Sequence[Tensor], weights: Sequence[float], size: int) -> Accepted:
    """The updates that may be averaged. A wrong shape or weight is a defect, not data, and raises."""
    for part, (theta, weight) in enumerate(zip(thetas, weights, strict=True)):
        if theta.shape != (size,) or theta.dtype != torch.float32:
            raise ValueError(f"part {part} sent {theta.dtype}{list(theta.shape)}, not float32[{size}]")
        if not 0 < weight < float("inf"):
            raise ValueError(f"part {part} has the weight {weight}")
    finite = [bool(torch.isfinite(theta).all()) for theta in thetas]
    return Accepted(
        [theta for theta, good in zip(thetas, finite, strict=True) if good],
        [weight for weight, good in zip(weights, finite, strict=True) if good],
        [part for part, good in enumerate(finite) if not good],
    )
