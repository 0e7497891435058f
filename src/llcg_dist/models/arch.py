"""Models given by an arch string, the paper's notation: G (GCN), S (SAGE), L (linear) and B (BatchNorm)."""

from collections.abc import Callable, Mapping

from torch import nn

from llcg_dist.config.model import ModelConfig
from llcg_dist.models.layers import Gcn, Sage
from llcg_dist.models.registry import structure
from llcg_dist.models.stages import GraphModel, Stage

MakeLayer = Callable[[int, int, bool], nn.Module]
"""(input width, output width, whether it is the last layer of the model) -> layer."""


def build(config: ModelConfig, num_features: int, num_classes: int) -> GraphModel:
    """The model of model.arch, or of model=sage, gcn or mlp with `layers` and `norm`."""
    return GraphModel(stack(config, standard_layers(config), num_features, num_classes))


def standard_layers(config: ModelConfig) -> dict[str, MakeLayer]:
    """The layer of each letter of an arch string."""
    return {
        "G": lambda width_in, width_out, _: Gcn(width_in, width_out, config.gcn_norm),
        "S": lambda width_in, width_out, _: Sage(width_in, width_out),
        "L": lambda width_in, width_out, _: nn.Linear(width_in, width_out),
    }


def stack(config: ModelConfig, layers: Mapping[str, MakeLayer], num_features: int, num_classes: int) -> list[Stage]:
    """The stages of a model's letters. SBSBS: SAGE, BatchNorm, SAGE, BatchNorm, SAGE.

    Every layer but the first is preceded by ReLU and dropout, which come after its BatchNorm if it has one. A leading B
    normalises the features and has no affine weights.
    """
    arch, stages = structure(config).letters, list[Stage]()
    last = max(position for position, letter in enumerate(arch) if letter != "B")
    width, norm, hidden = num_features, None, False
    for position, letter in enumerate(arch):
        if letter == "B":
            if norm is not None:  # BB: the first becomes a stage without a layer
                stages.append(Stage(None, norm))
            norm = nn.BatchNorm1d(width, affine=position > 0)
            continue
        width_out = num_classes if position == last else config.hidden
        layer = layers[letter](width, width_out, position == last)
        stages.append(Stage(layer, norm, relu=hidden, dropout=config.dropout if hidden else 0.0))
        width, norm, hidden = width_out, None, True
    if norm is not None:
        stages.append(Stage(None, norm))
    return stages
