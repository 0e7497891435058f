"""Screening: what machines send is checked before it is averaged, because one NaN would poison the model of all."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Screened:
    """The vectors that may be averaged, and their weights."""

    vectors: list[Tensor]
    weights: list[float]
    skipped: list[int]
    """Parts whose vector was not finite."""


def screen(vectors: Sequence[Tensor], weights: Sequence[float], size: int) -> Screened:
    """Sorts out parameters, or gradients, that are not finite. A wrong shape or weight is a defect and raises."""
    for part, (vector, weight) in enumerate(zip(vectors, weights, strict=True)):
        if vector.shape != (size,) or vector.dtype != torch.float32:
            raise ValueError(f"part {part} sent {vector.dtype}{list(vector.shape)}, not float32[{size}]")
        if not 0 < weight < float("inf"):
            raise ValueError(f"part {part} has the weight {weight}")
    finite = [is_finite(vector) for vector in vectors]
    return Screened(
        [vector for vector, good in zip(vectors, finite, strict=True) if good],
        [weight for weight, good in zip(weights, finite, strict=True) if good],
        [part for part, good in enumerate(finite) if not good],
    )


def is_finite(vector: Tensor) -> bool:
    """A sum is finite only if all of it is, and a third of the work; one that overflows is looked at again."""
    return bool(vector.sum().isfinite()) or bool(vector.isfinite().all())
