"""Screening of what machines send before it is averaged: one NaN or infinity would spoil the averaged model."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Screened:
    """The finite vectors, which may be averaged, and their weights."""

    vectors: list[Tensor]
    weights: list[float]
    skipped: list[int]
    """Parts whose vector was not finite."""


def screen(vectors: Sequence[Tensor], weights: Sequence[float], size: int) -> Screened:
    """Separates finite vectors (parameters or gradients) from those with NaN or infinity; index = part.

    A vector that is not float32 [size], or a weight that is not positive, is a defect of the program: ValueError.
    """
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
    """Whether all values are finite.

    A finite sum proves it in a third of the time that checking each value takes; only where the sum is not finite,
    which may be an overflow of finite values, is each value checked.
    """
    return bool(vector.sum().isfinite()) or bool(vector.isfinite().all())
