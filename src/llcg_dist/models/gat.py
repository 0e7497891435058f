"""Graph attention networks (Veličković et al., 2018), in the form that the LLCG paper uses."""

from torch import nn

from llcg_dist.config.model import ModelConfig
from llcg_dist.models.arch import stack
from llcg_dist.models.layers import Gat
from llcg_dist.models.stages import GraphModel


def build(config: ModelConfig, num_features: int, num_classes: int) -> GraphModel:
    """`layers` attention layers, with BatchNorm, ReLU and dropout between them.

    The heads of a hidden layer are concatenated to `hidden` outputs; those of the last layer are averaged.
    """

    def attention(width_in: int, width_out: int, last: bool) -> nn.Module:
        return Gat(width_in, width_out if last else width_out // config.heads, config.heads, average_heads=last)

    return GraphModel(stack(config, {"A": attention}, num_features, num_classes))
