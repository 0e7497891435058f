"""The methods by name. One short file per method; each says only what differs from plain parameter averaging."""

from llcg_dist.algorithms.base import Algorithm
from llcg_dist.algorithms.full_sync import FullSync
from llcg_dist.algorithms.ggs import Ggs
from llcg_dist.algorithms.llcg import Llcg
from llcg_dist.algorithms.psgd_pa import PsgdPa
from llcg_dist.algorithms.server_only import ServerOnly
from llcg_dist.algorithms.single import Single
from llcg_dist.algorithms.subgraph_approx import SubgraphApprox
from llcg_dist.config.schema import Config
from llcg_dist.errors import UserError

ALGORITHMS: dict[str, type[Algorithm]] = {
    "psgd_pa": PsgdPa,
    "llcg": Llcg,
    "llcg_paper": Llcg,
    "llcg_plus": Llcg,
    "ggs": Ggs,
    "full_sync": FullSync,
    "subgraph_approx": SubgraphApprox,
    "single": Single,
    "server_only": ServerOnly,
}


def build_algorithm(config: Config) -> Algorithm:
    """The method that the settings name; UserError for settings that it cannot work with."""
    if config.algorithm.name not in ALGORITHMS:
        raise UserError(f"algorithm={config.algorithm.name}: must be one of {', '.join(ALGORITHMS)}")
    algorithm = ALGORITHMS[config.algorithm.name](config)
    algorithm.check()
    return algorithm
