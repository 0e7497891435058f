"""Models: settings of the group `model` -> GraphModel. arch.py builds sage, gcn, mlp and arch strings."""

from collections.abc import Callable

from llcg_dist.config.schema import ModelConfig
from llcg_dist.models import appnp, arch, gat, resgcn, skip_sage
from llcg_dist.models.stages import GraphModel

_BUILDERS: dict[str, Callable[[ModelConfig, int, int], GraphModel]] = {
    "arch": arch.build,
    "sage": arch.build,
    "gcn": arch.build,
    "mlp": arch.build,
    "gat": gat.build,
    "appnp": appnp.build,
    "resgcn": resgcn.build,
    "skip_sage": skip_sage.build,
}


def build_model(config: ModelConfig, num_features: int, num_classes: int) -> GraphModel:
    """The module with freshly initialised weights, drawn from torch's global generator."""
    return _BUILDERS[config.name](config, num_features, num_classes)
