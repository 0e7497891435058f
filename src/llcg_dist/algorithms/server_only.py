"""The control that the paper lacks: how much of LLCG do the correction steps explain alone?"""

from torch import Tensor

from llcg_dist.algorithms.llcg import Llcg
from llcg_dist.training.screening import Models


class ServerOnly(Llcg):
    """LLCG's correction steps without any machine."""

    trains_on_parts = False
    num_machines = 0

    def local_steps(self, planned_rounds: int | None = None) -> list[int]:
        return [0] * self.config.num_rounds

    def aggregate(self, theta: Tensor, models: Models) -> Tensor:
        return theta
