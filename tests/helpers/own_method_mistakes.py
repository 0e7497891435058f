"""Methods of one's own with mistakes in what makes them."""

from llcg_dist.algorithms.base import Algorithm
from llcg_dist.config.schema import Config


class Forgetful(Algorithm):
    """Does not tell its base class the settings."""

    def __init__(self, config: Config) -> None:
        self.mu = 0.5


class EarlyReader(Algorithm):
    """Reads what its base class has not set yet."""

    def __init__(self, config: Config) -> None:
        self.rounds = self.config.num_rounds
        super().__init__(config)
