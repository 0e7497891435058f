"""Methods of a user's that keep what they were given, or return something else than a model."""

from typing import Any

import torch
from torch import Tensor

from llcg_dist.algorithms.base import Algorithm
from llcg_dist.algorithms.llcg import Llcg
from llcg_dist.config.schema import Config
from llcg_dist.training.correction import Corrector
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


class KeepsItsBuffer(Llcg):
    """An average of all models so far, which is corrected in place; `copies`: and copied."""

    def __init__(self, config: Config, copies: bool) -> None:
        super().__init__(config)
        self.copies, self.average = copies, torch.zeros(())

    def correct(self, theta: Tensor, models: Models, corrector: Corrector) -> Tensor:
        corrected = super().correct(theta, models, corrector)
        self.average = corrected.clone() if self.average.dim() == 0 else self.average.lerp_(corrected, 0.5)
        return self.average.clone() if self.copies else self.average


class Returns(Algorithm):
    """What `options.what` says in place of the average."""

    def __init__(self, config: Config, what: str) -> None:
        super().__init__(config)
        self.what = what

    def aggregate(self, theta: Tensor, models: Models) -> Any:
        average = super().aggregate(theta, models)
        wrong = {"nothing": None, "double": average.double(), "half": average[: len(average) // 2]}
        return wrong[self.what] if self.what in wrong else average.where(~models.statistics, torch.tensor(-1.0))
