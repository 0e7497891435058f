"""The gradient noise scale (McCandlish, Kaplan, Amodei et al., An Empirical Model of Large-Batch Training, 2018).

B_noise = tr(Σ) / ‖G‖², in examples: Σ is the covariance of the gradients of single training nodes, neighbour sampling
included, G their mean. A step with batches of B lowers the loss by 1 / (1 + B_noise / B) of what a step without noise
would: batches far below B_noise make steps that are worth more in proportion to B, batches above it are wasted.
"""

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from llcg_dist.data.views import View
from llcg_dist.sampling.minibatch import Sampler, load_batch
from llcg_dist.training.auto_s import use_batch_statistics
from llcg_dist.training.flat_vector import gradient_of
from llcg_dist.training.loss import loss

_LARGEST_SHARE = 0.25
"""Of the training nodes in one batch: batches that share most of their nodes tell nothing of the noise."""


def noise_scale(batch_size: int, squares: Sequence[float], square_of_mean: float) -> float:
    """B_noise from the gradients g of M batches: their ‖g‖², and ‖mean of g‖²; infinite where no mean gradient is left.

    E‖g‖² = ‖G‖² + tr(Σ) / B, and E‖mean of g‖² = ‖G‖² + tr(Σ) / (M·B).
    """
    number = len(squares)
    if number < 2:
        raise ValueError("the noise of gradients takes two batches or more")
    trace = (sum(squares) / number - square_of_mean) * batch_size * number / (number - 1)
    signal = square_of_mean - trace / (number * batch_size)
    if trace <= 0:
        return 0.0
    return trace / signal if signal > 0 else math.inf


def measure_noise_scale(
    model: nn.Module, view: View, sampler: Sampler, batch_size: int, batches: int, rng: np.random.Generator
) -> float:
    """B_noise at the model's parameters, by this many batches of the view's training nodes. BatchNorm normalises with
    the batch's statistics, as in a step; dropout is off. The model's running statistics move."""
    nodes = view.train_nodes
    size = max(1, min(batch_size, int(_LARGEST_SHARE * len(nodes))))
    use_batch_statistics(model)
    total, squares = torch.zeros((), dtype=torch.float64), list[float]()
    for _ in range(batches):
        chosen = rng.choice(nodes, size, replace=False)
        batch = load_batch(view, sampler, chosen, int(rng.integers(2**31))).to("cpu")
        gradient = gradient_of(loss(model(batch.features, batch.blocks), batch.labels, view.task), model)
        squares.append(gradient.square().sum().item())
        total = total + gradient
    return noise_scale(size, squares, (total / batches).square().sum().item())
