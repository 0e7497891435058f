"""The skip-connected GraphSAGE that OGB's leaderboard has for MAG240M, and the paper's Figure 11 after it."""

from llcg_dist.config.schema import ModelConfig
from llcg_dist.models.arch import stack, standard_layers
from llcg_dist.models.stages import GraphModel


def build(config: ModelConfig, num_features: int, num_classes: int) -> GraphModel:
    """`layers` SAGE layers of the hidden width, then a perceptron with one hidden layer: SBSBLBL for two.

    The skip connection is SAGE's own map of the node itself, W1: a further linear map of the same x added to it would
    give no function that W1 does not. BatchNorm, ReLU and dropout follow every layer but the last.
    """
    letters = "S" * config.layers + "LL"
    arch = ("B" if config.input_norm else "") + ("B" if config.norm == "batch" else "").join(letters)
    return GraphModel(stack(arch, standard_layers(config), config, num_features, num_classes))
