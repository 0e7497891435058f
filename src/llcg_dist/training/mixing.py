"""algorithm.aggregate=learned: the machines' models, mixed layer by layer with weights that the server fits.

Learned souping (Enhanced Soups for Graph Neural Networks, arXiv 2503.11612): layer l of the mixture is Σ_p α_lp·θ_lp
with α_l = softmax(a_l) over the machines, and gradient steps on the logits a lower the loss of the mixture. Here the
loss is that of the server's mini-batches of training nodes, and every round begins with the weights of the plain
average, so that there is nothing to keep from round to round.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

import torch
from torch import Tensor

from llcg_dist.config.algorithm import AlgorithmConfig
from llcg_dist.training.average import weighted_average
from llcg_dist.training.screening import Models


class GradientSource(Protocol):
    """Mini-batch gradients of the training loss on the full graph (training/trainer.py)."""

    def begin_round(self, theta: Tensor, round_: int) -> None: ...

    def gradient_at(self, theta: Tensor) -> Tensor:
        """[number of learned parameters]: of the round's next mini-batch."""


class LayerMixer:
    """Fits the weights of the machines' models in every layer."""

    def __init__(self, gradients: GradientSource, sizes: Mapping[str, int], settings: AlgorithmConfig) -> None:
        """`sizes`: how many learned parameters each layer has, in the flat vector's order."""
        self._gradients, self._layers, self._sizes = gradients, list(sizes), list(sizes.values())
        self._steps, self._lr = settings.mix_steps, settings.mix_lr

    def mix(self, models: Models) -> Tensor:
        """The mixture [n] of a round's models; BatchNorm's running statistics are those of the plain average. The
        weights go to the round's notes, by layer and part."""
        learned, average = ~models.statistics, weighted_average(models.vectors, models.weights)
        by_layer = list(zip(*(vector[learned].split(self._sizes) for vector in models.vectors), strict=True))
        logits = torch.tensor(models.weights, dtype=torch.float64).log().repeat(len(by_layer), 1)
        optimizer = torch.optim.Adam([logits], self._lr)
        self._gradients.begin_round(average, models.round)
        for _ in range(self._steps):
            weights = logits.softmax(dim=1)
            mixture = mixed(by_layer, weights)
            gradient = self._gradients.gradient_at(average.masked_scatter(learned, mixture))
            logits.grad = logit_gradient(by_layer, weights, mixture.split(self._sizes), gradient.split(self._sizes))
            optimizer.step()
        weights = logits.softmax(dim=1)
        of_parts = [dict(zip(models.parts, of_layer, strict=True)) for of_layer in weights.tolist()]
        models.notes["mixing_weights"] = dict(zip(self._layers, of_parts, strict=True))
        return average.masked_scatter(learned, mixed(by_layer, weights))


def mixed(by_layer: Sequence[Sequence[Tensor]], weights: Tensor) -> Tensor:
    """Σ_p α_lp·θ_lp of every layer l, one after the other; `weights` [layers, machines]."""
    layers = zip(by_layer, weights.tolist(), strict=True)
    return torch.cat([weighted_average(models, of_models) for models, of_models in layers])


def logit_gradient(
    by_layer: Sequence[Sequence[Tensor]], weights: Tensor, mixture: Sequence[Tensor], gradient: Sequence[Tensor]
) -> Tensor:
    """[layers, machines]: dL/da_lp = α_lp·⟨∂L/∂θ_l, θ_lp − θ_l⟩, where θ_l is the layer of the mixture."""
    rows = [
        [torch.dot(slope.double(), (model - middle).double()).item() for model in models]
        for models, middle, slope in zip(by_layer, mixture, gradient, strict=True)
    ]
    return weights * torch.tensor(rows, dtype=torch.float64)
