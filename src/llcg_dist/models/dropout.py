"""ReLU and dropout as one autograd function: the backward pass needs no mask, only the zeros of the output."""

from typing import Any

import torch
from torch import Tensor

_LEVELS = 2**16
"""Values of a 16-bit random number."""


def relu_dropout(x: Tensor, probability: float) -> Tensor:
    """dropout(relu(x)) in training mode; `probability` is rounded to a multiple of 1/65536."""
    return _ReluDropout.apply(x, probability)


class _ReluDropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, probability: float) -> Tensor:
        dropped = _dropped_levels(probability)
        ctx.scale = _LEVELS / (_LEVELS - dropped)
        kept = torch.ge(_random_levels(x), dropped - _LEVELS // 2, out=torch.empty_like(x))
        result = kept.mul_(x).clamp_(min=0).mul_(ctx.scale)
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (result,) = ctx.saved_tensors
        return torch.ops.aten.threshold_backward(gradients[0], result, 0).mul_(ctx.scale), None


def _dropped_levels(probability: float) -> int:
    return min(round(probability * _LEVELS), _LEVELS - 1)


def _random_levels(x: Tensor) -> Tensor:
    """Uniform int16 numbers, as many as x has entries.

    torch's dropout masks were the slowest part of a step (on an AMD processor); 16 random bits an entry suffice.
    """
    random_bits = torch.empty((x.numel() + 3) // 4, dtype=torch.int64, device=x.device).random_(-(2**63), None)
    return random_bits.view(torch.int16)[: x.numel()].view(x.shape)
