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
    """A step from the model that the machines started from along the way to their average."""

    default_step = 1.0

    def __init__(self, config: AlgorithmConfig) -> None:
        self._step = self.default_step if config.server_step is None else config.server_step
        self._beta = config.server_momentum
        self._memory: dict[str, Tensor] = {}

    remembers: tuple[str, ...] = ()
    """Vectors that are kept from round to round."""

    def step(self, theta: Tensor, average: Tensor, statistics: Tensor) -> Tensor:
        """The next model; `theta` is what the machines started from, `average` what they made of it.

        `statistics` [n] of bool: True where the flat vector holds BatchNorm's running statistics.
        """
        for name in self.remembers:
            self._memory.setdefault(name, torch.zeros_like(theta))
        return torch.where(statistics, average, theta - self._step * self._direction(theta - average))

    def _direction(self, gradient: Tensor) -> Tensor:
        """Where the optimiser goes, given the way from the average back to the model before."""
        raise NotImplementedError

    def state(self) -> dict[str, Tensor]:
        return {name: vector.clone() for name, vector in self._memory.items()}

    def load_state(self, state: dict[str, Tensor]) -> None:
        self._memory = {name: state[name].clone() for name in self.remembers}


class Plain(OuterOptimizer):
    """server_optimizer=plain: the average as it is."""

    def step(self, theta: Tensor, average: Tensor, statistics: Tensor) -> Tensor:
        return average


class Momentum(OuterOptimizer):
    remembers = ("momentum",)

    def _direction(self, gradient: Tensor) -> Tensor:
        return self._memory["momentum"].mul_(self._beta).add_(gradient)


class Nesterov(Momentum):
    """Momentum that looks ahead: the gradient and what the momentum will keep of it."""

    def _direction(self, gradient: Tensor) -> Tensor:
        return gradient + self._beta * super()._direction(gradient)


class Adam(OuterOptimizer):
    """Steps of about the same length for every parameter; without bias correction, as FedAdam has it."""

    default_step = 0.01
    remembers = ("mean", "square")

    def _direction(self, gradient: Tensor) -> Tensor:
        mean = self._memory["mean"].lerp_(gradient, 1 - self._beta)
        square = self._memory["square"].lerp_(gradient.square(), 1 - _SECOND_BETA)
        return mean / (square.sqrt() + _ADAPTIVITY)


_KINDS: dict[str, type[OuterOptimizer]] = {
    "plain": Plain,
    "momentum": Momentum,
    "nesterov": Nesterov,
    "adam": Adam,
}


def outer_optimizer(config: AlgorithmConfig) -> OuterOptimizer:
    return _KINDS[config.server_optimizer](config)
