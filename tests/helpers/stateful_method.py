"""Methods of a user's that keep something from round to round: at the server, at every machine, and what no checkpoint
can hold."""

from collections import OrderedDict
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from llcg_dist.algorithms.base import Algorithm
from llcg_dist.algorithms.full_sync import FullSync
from llcg_dist.config.schema import Config
from llcg_dist.training.screening import Models


class ServerMomentum(Algorithm):
    """algorithm.server_optimizer=momentum, written once more."""

    def __init__(self, config: Config, beta: float = 0.9) -> None:
        super().__init__(config)
        self.beta, self.momentum = beta, torch.zeros(())

    def aggregate(self, theta: Tensor, models: Models) -> Tensor:
        average = super().aggregate(theta, models)
        self.momentum = self.beta * self.momentum + (theta - average)
        return torch.where(models.statistics, average, theta - self.momentum)

    def state_dict(self) -> dict[str, Any]:
        return {"momentum": self.momentum}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.momentum = state["momentum"]


class Drift(Algorithm):
    """FedDyn's correction: a machine remembers how far its rounds have led it."""

    def __init__(self, config: Config, alpha: float = 0.1) -> None:
        super().__init__(config)
        self.alpha, self.drift = alpha, torch.zeros(())

    def local_gradient(self, gradient: Tensor, theta: Tensor, start: Tensor) -> Tensor:
        return gradient - self.drift + self.alpha * (theta - start)

    def after_local_steps(self, theta: Tensor, start: Tensor) -> None:
        self.drift = self.drift - self.alpha * (theta - start)

    def state_dict(self) -> dict[str, Any]:
        return {"drift": self.drift}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.drift = state["drift"]


class BothMomenta(ServerMomentum):
    """And one at every machine, which goes on where its last round ended; it counts its steps, too."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.drift, self.steps = torch.zeros(()), 0

    def local_gradient(self, gradient: Tensor, theta: Tensor, start: Tensor) -> Tensor:
        self.steps += 1
        self.drift = 0.5 * self.drift + gradient
        return self.drift * (1 + self.steps % 3)

    def state_dict(self) -> dict[str, Any]:
        return super().state_dict() | {"drift": self.drift, "steps": self.steps}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self.drift, self.steps = state["drift"], state["steps"]


class SavesOnly(ServerMomentum):
    """It does not know how to go on."""

    load_state_dict = Algorithm.load_state_dict


class KeepsObjects(ServerMomentum):
    """Objects are not read without executing what their file says."""

    def __init__(self, config: Config, what: str) -> None:
        super().__init__(config)
        self.what = what

    def state_dict(self) -> Any:
        return {
            "array": {"history": [{"seen": np.zeros(3)}]},
            "fraction": {"share": Fraction(1, 2)},
            "lambda": {"rule": lambda: 0},
            "list": [1],
            "ordered": {"counts": OrderedDict(a=torch.zeros(2))},
        }[self.what]


class WatchedSync(FullSync):
    """Notes how far every round has led every machine."""

    seen: ClassVar[list[float]] = []

    def after_local_steps(self, theta: Tensor, start: Tensor) -> None:
        self.seen.append(float((theta - start).norm()))
