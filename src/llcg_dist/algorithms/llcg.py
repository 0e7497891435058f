"""Learn Locally, Correct Globally (Algorithm 2)."""

from torch import Tensor

from llcg_dist.algorithms.psgd_pa import PsgdPa
from llcg_dist.training.correction import Corrector
from llcg_dist.training.screening import Models


class Llcg(PsgdPa):
    """PSGD-PA with K·rho^r local steps, and S steps of the server on the full graph after every average."""

    takes_correction_steps = True

    def correct(self, theta: Tensor, models: Models, corrector: Corrector) -> Tensor:
        return corrector.run(theta, models, self.config.algorithm.S)
