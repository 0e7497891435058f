"""The methods by name. One short file per method; each says only what differs from plain parameter averaging."""

import inspect

from llcg_dist.algorithms.base import Algorithm
from llcg_dist.algorithms.full_sync import FullSync
from llcg_dist.algorithms.ggs import Ggs
from llcg_dist.algorithms.llcg import Llcg
from llcg_dist.algorithms.own_hooks import check_hooks
from llcg_dist.algorithms.psgd_pa import PsgdPa
from llcg_dist.algorithms.server_only import ServerOnly
from llcg_dist.algorithms.single import Single
from llcg_dist.algorithms.subgraph_approx import SubgraphApprox
from llcg_dist.config.schema import Config
from llcg_dist.config.targets import resolve
from llcg_dist.errors import UserError, one_line, reason_in

OWN = "own"

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
    settings = config.algorithm
    if settings.target:
        algorithm = check_hooks(_own(config, settings.target), settings.target)
    elif settings.name in ALGORITHMS:
        algorithm = ALGORITHMS[settings.name](config)
    elif settings.name == OWN:
        raise UserError("algorithm.target: must be the dotted path of a subclass of llcg_dist.Algorithm")
    else:
        raise UserError(f"algorithm={settings.name}: must be one of {', '.join([*ALGORITHMS, OWN])}")
    algorithm.check()
    return algorithm


def _own(config: Config, target: str) -> Algorithm:
    """A method of the user's own."""
    if config.algorithm.name in ALGORITHMS:
        raise UserError(f"algorithm.target={target}: use algorithm=own; {config.algorithm.name} is a method of ours")
    kind = resolve("algorithm.target", target)
    if not (inspect.isclass(kind) and issubclass(kind, Algorithm)):
        raise UserError(f"algorithm.target={target}: must be a subclass of llcg_dist.Algorithm")
    try:
        algorithm = kind(config, **config.algorithm.options)
    except (TypeError, ValueError) as error:
        options = ", ".join(config.algorithm.options) or "none"
        raise UserError(f"algorithm.target={target}: refused its options ({options}): {one_line(error)}") from None
    except AttributeError as error:  # most often of what super().__init__ has not set yet
        rule = "call super().__init__(config) first, where that is missing"
        raise UserError(f"algorithm.target={target}: __init__ failed ({one_line(error)}); {rule}") from error
    except UserError:
        raise
    except Exception as error:
        reason = reason_in(kind, error)
        raise UserError(f"algorithm.target={target}: __init__ failed ({reason})") from error
    missing = [name for name in vars(Algorithm(config)) if not hasattr(algorithm, name)]
    if missing:
        rule = "its __init__ must call super().__init__(config)"
        raise UserError(f"algorithm.target={target}: has no {', '.join(missing)}; {rule}")
    return algorithm
