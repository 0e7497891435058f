"""The number format of a step's dense products (train.precision)."""

import contextlib

import torch

from llcg_dist.config.train import Precision


def computing_in(precision: str, device: str) -> contextlib.AbstractContextManager[object]:
    """Within it a model's dense products are in this precision, whoever wrote its layers.

    bfloat16: torch's autocast rounds the operands of a product as it is made, sums in float32 and rounds the result, so
    hidden states and their gradients are bfloat16 too. Weights, their gradients, the optimiser and BatchNorm's
    statistics stay float32.
    """
    if precision == Precision.float32:
        return contextlib.nullcontext()
    return torch.autocast(torch.device(device).type, dtype=torch.bfloat16)
