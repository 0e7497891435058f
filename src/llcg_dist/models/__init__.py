"""Models: settings of the group `model` -> GraphModel. registry.py lists them; arch.py builds sage, gcn, mlp, arch."""

from typing import TYPE_CHECKING

from llcg_dist.models.registry import build_model

if TYPE_CHECKING:
    from torch import nn

    from llcg_dist.models.stages import GraphModel

__all__ = ["build_model", "plain_module"]


def plain_module(model: "GraphModel") -> "nn.Module":
    """The model as a module that is called with (x, edge_index); it shares the model's weights."""
    from llcg_dist.models.full_graph import FullGraphModel

    return FullGraphModel(model)
