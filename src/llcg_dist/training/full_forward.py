"""The forward pass over the full graph that suits a model: layer by layer, or in batches with all neighbours."""

from typing import Protocol

from torch import Tensor

from llcg_dist.data.graph import Graph
from llcg_dist.data.rows import Array
from llcg_dist.models.base import Model
from llcg_dist.models.stages import GraphModel
from llcg_dist.training.batchwise import BatchedForward
from llcg_dist.training.hidden_states import IN_MEMORY, HiddenStates
from llcg_dist.training.layerwise import FullGraphForward


class FullForward(Protocol):
    def logits(self, recalibrate: bool = True) -> Tensor:
        """[N, C] in eval mode, with BatchNorm's statistics recalibrated first if the pass was made for it."""


def full_forward(
    graph: Graph,
    model: Model,
    chunk: int,
    states: HiddenStates = IN_MEMORY,
    nodes: Array | None = None,
    recalibrate: bool = False,
) -> FullForward:
    """`nodes`: mask [N] of the nodes whose logits are needed. Only a pass layer by layer keeps hidden states:
    `states` says where and how."""
    if isinstance(model, GraphModel):
        return FullGraphForward(graph, model, chunk, states, nodes, recalibrate)
    return BatchedForward(graph, model, chunk, nodes, recalibrate)
