"""Models spelled as the paper spells them: a string over G (GCN), S (SAGE), L (linear) and B (BatchNorm)."""

from collections.abc import Callable, Mapping

from torch import nn

from llcg_dist.config.facts import arch_string
from llcg_dist.config.schema import ModelConfig
from llcg_dist.models.layers import Gcn, Sage
from llcg_dist.models.stages import GraphModel, Stage

MakeLayer = Callable[[int, int, bool], nn.Module]
"""(width in, width out, whether it is the model's last) -> layer."""


def build(config: ModelConfig, num_features: int, num_classes: int) -> GraphModel:
    return GraphModel(stack(arch_string(config), standard_layers(config), config, num_features, num_classes))


def standard_layers(config: ModelConfig) -> dict[str, MakeLayer]:
    return {
        "G": lambda width_in, width_out, _: Gcn(width_in, width_out, config.gcn_norm),
        "S": lambda width_in, width_out, _: Sage(width_in, width_out),
        "L": lambda width_in, width_out, _: nn.Linear(width_in, width_out),
    }


def stack(
    arch: str, layers: Mapping[str, MakeLayer], config: ModelConfig, num_features: int, num_classes: int
) -> list[Stage]:
    """The stages of an arch string. SBSBS: SAGE, BatchNorm, SAGE, BatchNorm, SAGE.

    ReLU and dropout stand before every layer but the first, after a BatchNorm before it. A leading B normalises the
    features and has no affine weights.
    """
    stages: list[Stage] = []
    last = max(position for position, letter in enumerate(arch) if letter != "B")
    width, norm, hidden = num_features, None, False
    for position, letter in enumerate(arch):
        if letter == "B":
            if norm is not None:  # BB: the first is a stage of its own
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
