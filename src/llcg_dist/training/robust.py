"""Robust aggregation: coordinate by coordinate, the mean of the middle values of the machines' models.

Yin, Chen, Ramchandran and Bartlett, Byzantine-Robust Distributed Learning (2018). Every machine has one voice, whatever
the size of its part. What a minority sends, however large, moves no coordinate beyond the others' values. BatchNorm's
running statistics are coordinates like any other: a variance between two positive ones is positive.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from llcg_dist.config.algorithm import Aggregate, AlgorithmConfig

_PIECE = 1 << 16
"""Coordinates that are sorted at once: all of a large model's would take several times its memory."""


def trimmed_mean(vectors: Sequence[Tensor], trimmed: int) -> Tensor:
    """[n] float32: of every coordinate the mean without the `trimmed` lowest and the `trimmed` highest of its values.

    Of `vectors`, each [n] float32 and finite, more than 2·trimmed are needed. Values are added in float64 and in their
    own order, so that the bits do not depend on the order of the machines.
    """
    if not 0 <= 2 * trimmed < len(vectors):
        raise ValueError(f"{len(vectors)} values, of which {trimmed} are left out at either end")
    pieces = zip(*(vector.split(_PIECE) for vector in vectors), strict=True)
    kept = slice(trimmed, len(vectors) - trimmed)
    return torch.cat([torch.stack(piece).sort(dim=0).values[kept].double().mean(dim=0).float() for piece in pieces])


def coordinate_median(vectors: Sequence[Tensor]) -> Tensor:
    """[n] float32: of every coordinate the median; of an even number the mean of the two in the middle."""
    return trimmed_mean(vectors, (len(vectors) - 1) // 2)


def trimmed_machines(settings: AlgorithmConfig, machines: int) -> int:
    """How many machines' values algorithm.trim leaves out at either end."""
    return int(settings.trim * machines + 1e-9)  # 0.3 of 10 are 3, whatever binary fractions say


def robust_aggregate(settings: AlgorithmConfig, vectors: Sequence[Tensor], machines: int) -> Tensor:
    """The models of a round by algorithm.aggregate; of the job's `machines` some may have been left out before."""
    if settings.aggregate == Aggregate.median:
        return coordinate_median(vectors)
    return trimmed_mean(vectors, min(trimmed_machines(settings, machines), (len(vectors) - 1) // 2))
