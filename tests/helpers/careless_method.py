"""Methods of a user's that keep what they were given, or return something else than a model."""

from typing import Any

import torch
from torch import Tensor

from llcg_dist.algorithms.base import Algorithm
from llcg_dist.config.schema import Config
from llcg_dist.training.screening import Models


class Careless(Algorithm):
    """In turn the old model, a machine's own, and the average; every machine counts its own steps."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.rounds = self.steps = 0

    def local_gradient(self, gradient: Tensor, theta: Tensor, start: Tensor) -> Tensor:
        self.steps += 1
        return gradient * (0.1 if self.steps > 4 else 1.0)

    def aggregate(self, theta: Tensor, models: Models) -> Tensor:
        self.rounds += 1
        average = super().aggregate(theta, models)
        return (models.vectors[0], theta, average)[self.rounds % 3]


class Returns(Algorithm):
    """What `options.what` says in place of the average."""

    def __init__(self, config: Config, what: str) -> None:
        super().__init__(config)
        self.what = what

    def aggregate(self, theta: Tensor, models: Models) -> Any:
        average = super().aggregate(theta, models)
        wrong = {"nothing": None, "double": average.double(), "half": average[: len(average) // 2]}
        return wrong[self.what] if self.what in wrong else average.where(~models.statistics, torch.tensor(-1.0))
