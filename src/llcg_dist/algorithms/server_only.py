"""The control that the paper lacks: how much of LLCG do the correction steps explain alone?"""

from torch import Tensor

from llcg_dist.algorithms.llcg import Llcg
from llcg_dist.config.rules import require
from llcg_dist.training.screening import Models


class ServerOnly(Llcg):
    """LLCG's correction steps without any machine."""

    trains_on_parts = False
    corrects_beside = False
    averages_models = False
    num_machines = 0

    def check(self) -> None:
        super().check()
        rule = "must be a number, at least 1: server_only does nothing else"
        steps = self.config.algorithm.S
        require(isinstance(steps, int) and steps >= 1, self.config, "algorithm.S", rule)

    def local_steps(self, planned_rounds: int | None = None) -> list[int]:
        return [0] * self.config.num_rounds

    def aggregate(self, theta: Tensor, models: Models) -> Tensor:
        return theta
