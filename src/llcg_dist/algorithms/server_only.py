"""The control that the paper lacks: how much of LLCG do the correction steps explain alone?"""

from collections.abc import Sequence

from torch import Tensor

from llcg_dist.algorithms.llcg import Llcg


class ServerOnly(Llcg):
    """LLCG's correction steps without any machine."""

    trains_on_parts = False

    def local_steps(self, planned_rounds: int | None = None) -> list[int]:
        return [0] * self.config.num_rounds

    def average(self, theta: Tensor, updates: Sequence[Tensor], weights: Sequence[float]) -> Tensor:
        return theta
