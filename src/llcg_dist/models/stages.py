"""GraphModel, the base of all models: a sequence of stages that map one hidden state of the nodes to the next.

A mini-batch runs through all stages with one block per message-passing stage. Evaluation runs the same stages one at a
time over the full graph, in chunks of nodes (training/layerwise.py).
"""

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn
from torch.nn import functional

from llcg_dist.data.feature_rows import LazyRows, Rows, materialize
from llcg_dist.models.base import Model
from llcg_dist.models.dropout import relu_dropout
from llcg_dist.models.products import layer_products, summed_ahead
from llcg_dist.sampling.block import Block
from llcg_dist.sampling.sparse_matrix import SparseMatrix


class BlockLayer(nn.Module):
    """A message-passing layer: called with x [num_src, in] and a block, it returns [num_dst, out]."""

    accepts_global_columns = False
    """Whether its cost depends on the rows and entries of the block alone, so that a block with a column for every node
    of the graph is as cheap as one with local columns."""
    accepts_lazy_rows = False
    """Whether x may be LazyRows."""


class ProductLayer(BlockLayer):
    """A layer A·X·W + X_dst·W_self + b: X·W may be made once for all nodes, and added up chunk by chunk."""

    accepts_global_columns = True

    @property
    def weight(self) -> Tensor:
        """W, transposed: [out, in]."""
        raise NotImplementedError

    @property
    def self_weight(self) -> Tensor | None:
        """W_self, transposed: [out, in]; None where a node reads its own row through A."""
        return None

    @property
    def bias(self) -> Tensor:
        """b [out]."""
        raise NotImplementedError

    def adjacency(self, block: Block) -> SparseMatrix:
        """A, [num_dst, num_src]."""
        raise NotImplementedError

    def prepared(self, x: LazyRows, block: Block) -> Rows:
        """Features with their sum over neighbours, where that comes before the weights."""
        return summed_ahead(self.adjacency(block), x, self.weight) if block.dst is None else x

    def forward(self, x: Rows, block: Block) -> Tensor:
        own = () if self.self_weight is None else (self.self_weight, block.dst)
        return layer_products(self.adjacency(block), x, self.weight, self.bias, *own)


class Stage(nn.Module):
    """BatchNorm, ReLU, dropout, then a layer; each of them is optional.

    x [num_src, in] and a block -> [num_dst, out] if the layer is a BlockLayer, else x [n, in] -> [n, out]. BatchNorm
    comes first, so its statistics over the full graph are those of the hidden state that enters the stage. With
    `residual` that state is added to the layer's output.
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
        """Whether this is a message-passing stage, which needs a block."""
        return isinstance(self.layer, BlockLayer)

    @property
    def accepts_lazy_rows(self) -> bool:
        """Whether x may be LazyRows: only if nothing precedes a layer that accepts them."""
        layer_only = self.norm is None and not (self.relu or self.dropout or self.residual)
        return layer_only and isinstance(self.layer, BlockLayer) and self.layer.accepts_lazy_rows

    def forward(self, x: Tensor, block: Block | None = None) -> Tensor:
        h = self.layer_input(x)
        if self.layer is not None:
            h = self.layer(h) if block is None else self.layer(h, block)
        return h + (x if block is None else block.dst_rows(x)) if self.residual else h

    def layer_input(self, x: Tensor) -> Tensor:
        """The layer's input: BatchNorm, ReLU and dropout applied to x."""
        h = x if self.norm is None else self.norm(x)
        if self.relu and self.dropout and self.training:
            h = relu_dropout(h, self.dropout)
        elif self.relu:
            h = h.relu()
        elif self.dropout:
            h = functional.dropout(h, self.dropout, self.training)
        return h


class GraphModel(Model):
    """A sequence of stages, `depth` of which are message-passing stages that take one block each."""

    def __init__(self, stages: Sequence[Stage], unused_bytes: int = 0) -> None:
        """`unused_bytes`: size of weights that the authors' code sends but never uses; the paper's MB count them."""
        super().__init__()
        self.stages = nn.ModuleList(stages)
        self.unused_bytes = unused_bytes

    @property
    def depth(self) -> int:
        return sum(stage.reads_neighbours for stage in self.each_stage())

    def each_stage(self) -> list[Stage]:
        """The stages, typed."""
        return [stage for stage in self.stages if isinstance(stage, Stage)]

    def prepared(self, x: Rows, blocks: Sequence[Block]) -> Rows:
        first = self.each_stage()[0]
        if not first.accepts_lazy_rows:
            return materialize(x)
        if isinstance(x, LazyRows) and isinstance(first.layer, ProductLayer):
            return first.layer.prepared(x, blocks[0])
        return x

    def forward(self, x: Rows, blocks: Sequence[Block]) -> Tensor:
        """x [inputs, F], one block per message-passing stage, input side first -> logits [outputs, C]."""
        stages, remaining = self.each_stage(), iter(blocks)
        state: Any = x if stages[0].accepts_lazy_rows else materialize(x)
        for stage in stages:
            state = stage(state, next(remaining) if stage.reads_neighbours else None)
        return state
