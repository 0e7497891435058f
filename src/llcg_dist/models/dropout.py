"""ReLU and dropout in one: the entries that are zero afterwards are all that the way back has to know."""

from typing import Any

import torch
from torch import Tensor

_LEVELS = 2**16


class _ReluDropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, share: float) -> Tensor:
        # torch's own masks were the slowest part of a step (on an AMD processor); 16 random bits an entry will do.
        drawn = torch.empty((x.numel() + 3) // 4, dtype=torch.int64, device=x.device).random_(-(2**63), None)
        numbers = drawn.view(torch.int16)[: x.numel()].view(x.shape)
        dropped = min(round(share * _LEVELS), _LEVELS - 1)
        ctx.scale = _LEVELS / (_LEVELS - dropped)
        kept = torch.ge(numbers, dropped - _LEVELS // 2, out=torch.empty_like(x))
        result = kept.mul_(x).clamp_(min=0).mul_(ctx.scale)
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (result,) = ctx.saved_tensors
        return torch.ops.aten.threshold_backward(gradients[0], result, 0).mul_(ctx.scale), None


def relu_dropout(x: Tensor, share: float) -> Tensor:
    """max(x, 0) with `share` (to the next 1/65536) of its entries dropped and the others scaled up in return."""
    return _ReluDropout.apply(x, share)
