"""The outer optimiser of algorithm.server_optimizer: the server's step from the averaged model to the next one.

The difference between the model that the machines started from and their average serves as a pseudo-gradient (Reddi et
al., 2021): momentum is FedAvgM (Hsu et al., 2019), nesterov the outer step of DiLoCo (Douillard et al., 2023), adam is
FedAdam. BatchNorm's running statistics are not optimised: they take the values of the average.
"""

import torch
from torch import Tensor

from llcg_dist.config.algorithm import AlgorithmConfig

_SECOND_MOMENT_BETA = 0.99
_ADAPTIVITY = 1e-3
"""FedAdam's tau, which bounds the step of parameters that hardly move."""


class OuterOptimizer:
    """A step from the model that the machines started from, with their way to the average as pseudo-gradient."""

    default_step = 1.0
    """Outer learning rate where algorithm.server_step is not set."""

    state_vectors: tuple[str, ...] = ()
    """Names of the vectors [n] that are kept from round to round and checkpointed."""

    def __init__(self, config: AlgorithmConfig) -> None:
        self._step_size = self.default_step if config.server_step is None else config.server_step
        self._beta = config.server_momentum
        self._state: dict[str, Tensor] = {}

    def step(self, theta: Tensor, average: Tensor, statistics: Tensor) -> Tensor:
        """The next model [n]: `theta` is the model that the machines started from, `average` that of their results.

        `statistics` [n] bool: True where the flat vector holds BatchNorm's running statistics.
        """
        for name in self.state_vectors:
            self._state.setdefault(name, torch.zeros_like(theta))
        return torch.where(statistics, average, theta - self._step_size * self._direction(theta - average))

    def _direction(self, gradient: Tensor) -> Tensor:
        """The direction of the step, given the pseudo-gradient theta − average."""
        raise NotImplementedError

    def state(self) -> dict[str, Tensor]:
        """A copy of the state vectors, for a checkpoint."""
        return {name: vector.clone() for name, vector in self._state.items()}

    def load_state(self, state: dict[str, Tensor], size: int) -> None:
        """Restores the state vectors of a checkpoint, for a model of `size` values."""
        self._state = {name: state[name].clone() for name in self.state_vectors}
        for name, vector in self._state.items():
            if vector.shape != (size,):
                raise ValueError(f"{name}{list(vector.shape)} for a model of {size}")


class Plain(OuterOptimizer):
    """server_optimizer=plain: the next model is the average."""

    def step(self, theta: Tensor, average: Tensor, statistics: Tensor) -> Tensor:
        return average


class Momentum(OuterOptimizer):
    """server_optimizer=momentum: heavy-ball momentum on the pseudo-gradient, as in FedAvgM."""

    state_vectors = ("momentum",)

    def _direction(self, gradient: Tensor) -> Tensor:
        return self._state["momentum"].mul_(self._beta).add_(gradient)


class Nesterov(Momentum):
    """server_optimizer=nesterov: Nesterov momentum, whose direction is gradient + beta · updated momentum."""

    def _direction(self, gradient: Tensor) -> Tensor:
        return gradient + self._beta * super()._direction(gradient)


class Adam(OuterOptimizer):
    """server_optimizer=adam: FedAdam, that is Adam on the pseudo-gradient without bias correction."""

    default_step = 0.01
    state_vectors = ("mean", "square")

    def _direction(self, gradient: Tensor) -> Tensor:
        mean = self._state["mean"].lerp_(gradient, 1 - self._beta)
        square = self._state["square"].lerp_(gradient.square(), 1 - _SECOND_MOMENT_BETA)
        return mean / (square.sqrt() + _ADAPTIVITY)


_OPTIMIZERS: dict[str, type[OuterOptimizer]] = {
    "plain": Plain,
    "momentum": Momentum,
    "nesterov": Nesterov,
    "adam": Adam,
}


def outer_optimizer(config: AlgorithmConfig) -> OuterOptimizer:
    """The optimiser that algorithm.server_optimizer names."""
    return _OPTIMIZERS[config.server_optimizer](config)
