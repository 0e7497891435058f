"""Learn Locally, Correct Globally (Algorithm 2)."""

from torch import Tensor

from llcg_dist.algorithms.psgd_pa import PsgdPa
from llcg_dist.config.algorithm import Correction
from llcg_dist.training.correction import Corrector
from llcg_dist.training.screening import Models


class Llcg(PsgdPa):
    """PSGD-PA with K·rho^r local steps, and S steps of the server on the full graph: after every average, from it, or
    (correction=beside) while the machines train, from the model that they start from."""

    takes_correction_steps = True
    corrects_beside = True

    def correct_beside(self, theta: Tensor, round_: int, corrector: Corrector) -> None:
        if self._is_beside:
            corrector.run_beside(theta, round_, self.config.algorithm.S)

    def correct(self, theta: Tensor, models: Models, corrector: Corrector) -> Tensor:
        settings = self.config.algorithm
        if self._is_beside:
            return corrector.join(theta, models, settings.server_weight)
        return corrector.run(theta, models, settings.S)

    @property
    def _is_beside(self) -> bool:
        return self.config.algorithm.correction == Correction.beside
