"""Learn Locally, Correct Globally (Algorithm 2)."""

from torch import Tensor

from llcg_dist.algorithms.base import CorrectionSteps
from llcg_dist.algorithms.psgd_pa import PsgdPa


class Llcg(PsgdPa):
    """PSGD-PA with K·rho^r local steps, and S steps of the server on the whole graph after every average."""

    def correct(self, theta: Tensor, round_: int, correction_steps: CorrectionSteps) -> Tensor:
        return correction_steps(theta, round_, self.config.algorithm.S)
