"""What the server makes of an average: the average itself, or a step of an optimiser along the way to it.

The difference between the model that the machines started from and their average serves as a gradient (Reddi et al.,
2021): momentum is FedAvgM (Hsu et al., 2019), nesterov the outer step of DiLoCo (Douillard et al., 2023), adam FedAdam.
BatchNorm's running statistics are no direction to follow: they take the average's values.
"""

import torch
from torch import Tensor

from llcg_dist.config.schema import AlgorithmConfig

_SECOND_BETA = 0.99
_ADAPTIVITY = 1e-3
"""FedAdam's tau, which bounds the step of parameters that hardly move."""


class OuterOptimizer:
    """server_optimizer=plain: the average as it is. Subclasses say where else a step from `theta` leads."""

    default_step = 1.0

    def __init__(self, config: AlgorithmConfig, statistics: Tensor) -> None:
        """`statistics` [n] of bool: True where the flat vector holds BatchNorm's running statistics."""
        self._step = self.default_step if config.server_step is None else config.server_step
        self._beta, self._statistics = config.server_momentum, statistics
        self._memory = {name: torch.zeros(len(statistics)) for name in self.remembers}

    remembers: tuple[str, ...] = ()
    """Vectors that are kept from round to round."""

    def step(self, theta: Tensor, average: Tensor) -> Tensor:
        """The next model; `theta` is what the machines started from, `average` what they made of it."""
        return average

    def state(self) -> dict[str, Tensor]:
        return {name: vector.clone() for name, vector in self._memory.items()}

    def load_state(self, state: dict[str, Tensor]) -> None:
        for name, vector in self._memory.items():
            vector.copy_(state[name])

    def _from(self, theta: Tensor, direction: Tensor, average: Tensor) -> Tensor:
        return torch.where(self._statistics, average, theta - self._step * direction)


class Momentum(OuterOptimizer):
    remembers = ("momentum",)

    def step(self, theta: Tensor, average: Tensor) -> Tensor:
        return self._from(theta, self._updated(theta - average), average)

    def _updated(self, gradient: Tensor) -> Tensor:
        return self._memory["momentum"].mul_(self._beta).add_(gradient)


class Nesterov(Momentum):
    """Momentum that looks ahead: the gradient and what the momentum will keep of it."""

    def step(self, theta: Tensor, average: Tensor) -> Tensor:
        gradient = theta - average
        return self._from(theta, gradient + self._beta * self._updated(gradient), average)


class Adam(OuterOptimizer):
    """Steps of about the same length for every parameter; without bias correction, as FedAdam has it."""

    default_step = 0.01
    remembers = ("mean", "square")

    def step(self, theta: Tensor, average: Tensor) -> Tensor:
        gradient = theta - average
        mean = self._memory["mean"].lerp_(gradient, 1 - self._beta)
        square = self._memory["square"].lerp_(gradient.square(), 1 - _SECOND_BETA)
        return self._from(theta, mean / (square.sqrt() + _ADAPTIVITY), average)


_KINDS: dict[str, type[OuterOptimizer]] = {
    "plain": OuterOptimizer,
    "momentum": Momentum,
    "nesterov": Nesterov,
    "adam": Adam,
}


def outer_optimizer(config: AlgorithmConfig, statistics: Tensor) -> OuterOptimizer:
    return _KINDS[config.server_optimizer](config, statistics)
