"""aggregate=learned: the weights go where the loss falls, layer by layer, and the formula is the derivative."""

import pytest
import torch
from torch import Tensor, nn

from llcg_dist.config.algorithm import AlgorithmConfig
from llcg_dist.training.average import weighted_average
from llcg_dist.training.flat_vector import layer_sizes
from llcg_dist.training.mixing import LayerMixer, logit_gradient, mixed
from llcg_dist.training.screening import Models

STATISTICS = torch.tensor([False, False, False, True])
"""Two parameters of the first layer, one of the second, and a running statistic."""
SIZES = {"first": 2, "second": 1}


class Towards:
    """The gradient of half the squared distance to a target."""

    def __init__(self, *target: float) -> None:
        self._target = torch.tensor(target)
        self.began: list[tuple[list[float], int]] = []

    def begin_round(self, theta: Tensor, round_: int) -> None:
        self.began.append((theta.tolist(), round_))

    def gradient_at(self, theta: Tensor) -> Tensor:
        return theta[:3] - self._target


def models(*vectors: list[float], weights: list[float]) -> Models:
    updates = [torch.tensor(vector) for vector in vectors]
    return Models(4, torch.zeros(4), updates, weights, [], STATISTICS, [3, 5])


def mixer(gradients: Towards, **settings: float) -> LayerMixer:
    return LayerMixer(gradients, SIZES, AlgorithmConfig(name="llcg", **settings))  # type: ignore[arg-type]


def test_each_layer_takes_the_machine_that_serves_it() -> None:
    """Machine 0 is right in the first layer, machine 1 in the second; the statistic stays the mean."""
    gradients, found = Towards(1.0, 1.0, 5.0), models([1.0, 1.0, 0.0, 2.0], [0.0, 0.0, 5.0, 4.0], weights=[1.0, 1.0])
    theta = mixer(gradients, mix_steps=200, mix_lr=0.2).mix(found)
    assert theta.tolist() == pytest.approx([1.0, 1.0, 5.0, 3.0], abs=0.05)
    assert gradients.began == [([0.5, 0.5, 2.5, 3.0], 4)]
    weights = found.notes["mixing_weights"]
    assert list(weights) == ["first", "second"]
    assert weights["first"][3] > 0.95
    assert weights["second"][5] > 0.95
    assert sum(weights["first"].values()) == pytest.approx(1)


def test_without_a_slope_it_is_the_weighted_average() -> None:
    """The mean is where the target is: no step moves the weights, which begin with those of the average."""
    vectors, weights = ([4.0, 0.0, 8.0, 1.0], [0.0, 4.0, 0.0, 5.0]), [1.0, 3.0]
    found = mixer(Towards(1.0, 3.0, 2.0), mix_steps=5).mix(models(*vectors, weights=weights))
    assert torch.allclose(found, weighted_average([torch.tensor(vector) for vector in vectors], weights))


def test_the_formula_is_the_derivative() -> None:
    generator = torch.Generator().manual_seed(3)
    by_layer = [[torch.randn(n, generator=generator) for _ in range(3)] for n in (4, 2)]
    logits = torch.randn(2, 3, generator=generator, dtype=torch.float64, requires_grad=True)
    slopes = [torch.randn(n, generator=generator) for n in (4, 2)]
    weights = logits.softmax(dim=1)
    layers = [
        sum(w * v.double() for w, v in zip(row, of, strict=True)) for row, of in zip(weights, by_layer, strict=True)
    ]
    value = sum(layer @ slope.double() for layer, slope in zip(layers, slopes, strict=True))
    assert isinstance(value, Tensor)
    value.backward()
    mixture = mixed(by_layer, weights.detach()).split([4, 2])
    found = logit_gradient(by_layer, weights.detach(), mixture, slopes)
    assert logits.grad is not None
    assert torch.allclose(found, logits.grad, atol=1e-5)


def test_layers_are_the_modules_that_hold_parameters() -> None:
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2), nn.Sequential(nn.Linear(2, 1, bias=False)))
    assert layer_sizes(model) == {"0": 8, "1": 4, "2.0": 2}
