"""Methods of one's own with mistakes."""

from torch import Tensor

from llcg_dist.algorithms.base import Algorithm, Handlers, MachineTools
from llcg_dist.config.schema import Config
from llcg_dist.training.screening import Models


class Forgetful(Algorithm):
    """Does not tell its base class the settings."""

    def __init__(self, config: Config) -> None:
        self.mu = 0.5


class EarlyReader(Algorithm):
    """Reads what its base class has not set yet."""

    def __init__(self, config: Config) -> None:
        self.rounds = self.config.num_rounds
        super().__init__(config)


class FussyOptions(Algorithm):
    """Judges its options itself."""

    def __init__(self, config: Config, mu: float = -1.0) -> None:
        super().__init__(config)
        if mu < 0:
            raise ValueError("mu must not be below 0")


class ReadsFile(Algorithm):
    """Reads a file that is not there."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        with open("no/such/file") as file:
            self.weights = file.read()


class TooFewArguments(Algorithm):
    """A hook that does not take what it is given."""

    def local_gradient(self, gradient: Tensor) -> Tensor:  # type: ignore[override]
        return gradient


class Talkative(Algorithm):
    """Answers messages of its own."""

    def handlers(self, machine: MachineTools) -> Handlers:
        return {}


class NotFinite(Algorithm):
    """Divides by zero."""

    def aggregate(self, theta: Tensor, models: Models) -> Tensor:
        return super().aggregate(theta, models) / 0
