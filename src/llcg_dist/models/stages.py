"""The shape that all models share: stages, each of which turns the state of all nodes into the next.

A mini-batch runs through them with one block per message-passing stage; evaluation runs the same stages one at a time
over the whole graph, a chunk of nodes after the other (training/layerwise.py).
"""

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn
from torch.nn import functional

from llcg_dist.data.feature_rows import Rows, materialize
from llcg_dist.models.dropout import relu_dropout
from llcg_dist.sampling.block import Block


class BlockLayer(nn.Module):
    """A layer that reads neighbours: called with x [num_src, in] and a block, it returns [num_dst, out]."""

    reads_in_place = False
    """Whether its work grows with the rows that it computes and not with those that x holds."""
    accepts_lazy_rows = False
    """Whether x may be features that are still in their table."""


class Stage(nn.Module):
    """BatchNorm, ReLU, dropout, then a layer; each of them may be missing.

    x [num_src, in] and a block -> [num_dst, out] where the layer is a BlockLayer, else x [n, in] -> [n, out]. BatchNorm
    comes first, so its statistics over the whole graph are those of the state that enters the stage. With `residual`
    that state is added to the layer's output.
    """

    norm: nn.BatchNorm1d | None

    def __init__(
        self,
        layer: nn.Module | None,
        norm: nn.BatchNorm1d | None = None,
        relu: bool = False,
        dropout: float = 0.0,
        residual: bool = False,
    ) -> None:
        super().__init__()
        self.norm, self.layer = norm, layer
        self.relu, self.dropout, self.residual = relu, dropout, residual

    @property
    def reads_neighbours(self) -> bool:
        return isinstance(self.layer, BlockLayer)

    @property
    def accepts_lazy_rows(self) -> bool:
        alone = self.norm is None and not (self.relu or self.dropout or self.residual)
        return alone and isinstance(self.layer, BlockLayer) and self.layer.accepts_lazy_rows

    def forward(self, x: Tensor, block: Block | None = None) -> Tensor:
        h = self.prepared(x)
        if self.layer is not None:
            h = self.layer(h) if block is None else self.layer(h, block)
        return h + (x if block is None else block.own(x)) if self.residual else h

    def prepared(self, x: Tensor) -> Tensor:
        """What the layer gets of x: each row by itself."""
        h = x if self.norm is None else self.norm(x)
        if self.relu and self.dropout and self.training:
            h = relu_dropout(h, self.dropout)
        elif self.relu:
            h = h.relu()
        elif self.dropout:
            h = functional.dropout(h, self.dropout, self.training)
        return h


class GraphModel(nn.Module):
    """A sequence of stages; `depth` of them read neighbours, and each of those takes one block."""

    def __init__(self, stages: Sequence[Stage], unused_bytes: int = 0) -> None:
        """`unused_bytes`: weights that the authors' code held and sent but never used; the paper's MB count them."""
        super().__init__()
        self.stages = nn.ModuleList(stages)
        self.unused_bytes = unused_bytes

    @property
    def depth(self) -> int:
        return sum(stage.reads_neighbours for stage in self.each_stage())

    def each_stage(self) -> list[Stage]:
        return [stage for stage in self.stages if isinstance(stage, Stage)]

    def forward(self, x: Rows, blocks: Sequence[Block]) -> Tensor:
        """x [inputs, F], one block per message-passing stage, input side first -> logits [outputs, C]."""
        stages, remaining = self.each_stage(), iter(blocks)
        state: Any = x if stages[0].accepts_lazy_rows else materialize(x)
        for stage in stages:
            state = stage(state, next(remaining) if stage.reads_neighbours else None)
        return state
