"""Models: settings of the group `model` -> Model. registry.py lists them; arch.py builds sage, gcn, mlp, arch."""

from typing import TYPE_CHECKING

from llcg_dist.models.registry import build_model

if TYPE_CHECKING:
    from torch import nn

    from llcg_dist.models.base import Model

__all__ = ["build_model", "plain_module"]


def plain_module(model: "Model") -> "nn.Module":
    """The model as a module that is called with (x, edge_index): the user's own, or one that shares ours' weights."""
    from llcg_dist.models.full_graph import FullGraphModel
    from llcg_dist.models.own import EdgeIndexModel

    return model.module if isinstance(model, EdgeIndexModel) else FullGraphModel(model)
