"""What sampling, training and evaluation ask of a model."""

from collections.abc import Sequence

from torch import Tensor, nn

from llcg_dist.data.feature_rows import Rows
from llcg_dist.sampling.block import Block


class Model(nn.Module):
    """Called with x [inputs, F] and the blocks of a mini-batch, returns logits [outputs, C]."""

    reads_subgraph = False
    """Whether it reads one sampled subgraph (sampling.block.Subgraph) in place of a block per layer."""
    unused_bytes = 0
    """Size of weights that the authors' code sends but never uses; the paper's MB count them."""

    @property
    def depth(self) -> int:
        """Hops of neighbours that a mini-batch holds."""
        raise NotImplementedError

    @property
    def exact_hops(self) -> int:
        """Hops of all neighbours that give a node's exact output."""
        return self.depth

    def prepared(self, x: Rows, blocks: Sequence[Block]) -> Rows:
        """x with what of a step depends on no weight done to it, for a thread that draws ahead; forward returns the
        same with it."""
        return x

    def forward(self, x: Rows, blocks: Sequence[Block]) -> Tensor:
        raise NotImplementedError
