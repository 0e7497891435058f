"""What a method may change about a round."""

from collections.abc import Callable, Sequence

from torch import Tensor

from llcg_dist.comm.ledger import Kind
from llcg_dist.config.schema import Config
from llcg_dist.data.derived import DataAccess
from llcg_dist.training.average import weighted_average
from llcg_dist.training.schedule import local_steps

CorrectionSteps = Callable[[Tensor, int, int | str], Tensor]
"""(theta, round, steps) -> theta: gradient steps on the server's whole graph; auto takes as many as it sees fit."""


class Algorithm:
    """Local steps on every part, then averaging. Subclasses override only what differs."""

    allowed_messages: frozenset[Kind] = frozenset({Kind.PARAMETERS})
    """Kinds of message that may cross besides control; any other is an error."""

    trains_on_parts = True
    """One process per part (False: rank 0 alone)."""

    data_access: DataAccess = DataAccess.PART
    """What a machine samples from."""

    shares_gradients = False
    """Every step is taken along the mean of all machines' gradients, so that they all hold the same model."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def local_steps(self, planned_rounds: int | None = None) -> list[int]:
        """Steps of each machine in rounds 1..R; a run that was planned shorter keeps the growth of its plan."""
        rounds = self.config.num_rounds
        return local_steps(self.config.algorithm, planned_rounds or rounds, rounds)

    def average(self, theta: Tensor, updates: Sequence[Tensor], weights: Sequence[float]) -> Tensor:
        """θ after the machines' round; `theta` is what they started from."""
        return weighted_average(updates, weights)

    def correct(self, theta: Tensor, round_: int, correction_steps: CorrectionSteps) -> Tensor:
        """θ after the server's own steps, if the method takes any."""
        return theta
