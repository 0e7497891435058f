"""The skip-connected GraphSAGE of OGB's leaderboard for MAG240M, which the paper's Figure 11 uses."""

from llcg_dist.config.model import ModelConfig
from llcg_dist.models.arch import stack, standard_layers
from llcg_dist.models.stages import GraphModel


def build(config: ModelConfig, num_features: int, num_classes: int) -> GraphModel:
    """`layers` SAGE layers of the hidden width, then a perceptron with one hidden layer: SBSBLBL for two.

    The skip connection is W1, SAGE's linear map of the node itself: another linear map of the same x, added to it,
    would represent no further function. BatchNorm, ReLU and dropout follow every layer but the last.
    """
    return GraphModel(stack(config, standard_layers(config), num_features, num_classes))
