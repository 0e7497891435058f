"""APPNP, predict then propagate (Gasteiger et al., 2019), in the form that the LLCG paper uses."""

import torch
from torch import Tensor, nn

from llcg_dist.config.model import ModelConfig, Norm
from llcg_dist.models.products import sparse_product
from llcg_dist.models.stages import BlockLayer, GraphModel, Stage
from llcg_dist.sampling.block import Block


class Propagate(BlockLayer):
    r"""One step of personalised PageRank, :math:`h^{(l)} = \beta h^{(0)} + (1 - \beta) \hat{A} h^{(l-1)}`.

    The state of a node is h concatenated with h0, which later steps need again: x [num_src, 2 * width] ->
    [num_dst, 2 * width]. The first step takes [num_src, width], since h is h0; the last returns [num_dst, width].
    """

    def __init__(self, teleport: float, gcn_norm: str, first: bool, last: bool) -> None:
        super().__init__()
        self.teleport, self.gcn_norm, self.first, self.last = teleport, gcn_norm, first, last

    def forward(self, x: Tensor, block: Block) -> Tensor:
        h, h0 = (x, x) if self.first else x.chunk(2, dim=1)
        h0 = block.dst_rows(h0)
        h = self.teleport * h0 + (1 - self.teleport) * sparse_product(block.gcn_adjacency(self.gcn_norm), h)
        return h if self.last else torch.cat([h, h0], dim=1)


def build(config: ModelConfig, num_features: int, num_classes: int) -> GraphModel:
    """BatchNorm of the features, L, ReLU, `layers` propagations over the hidden width, dropout, L.

    In the authors' code each propagation step holds a linear layer that is never used: not built here, only counted in
    `unused_bytes`.
    """
    norm = nn.BatchNorm1d(num_features, affine=False) if config.norm == Norm.batch or config.input_norm else None
    steps = range(config.layers)
    propagations = [
        Stage(Propagate(config.teleport, config.gcn_norm, step == 0, step == steps[-1]), relu=step == 0)
        for step in steps
    ]
    input_stage = Stage(nn.Linear(num_features, config.hidden), norm)
    output_stage = Stage(nn.Linear(config.hidden, num_classes), dropout=config.dropout)
    unused_weights = config.layers * (config.hidden * config.hidden + config.hidden)
    return GraphModel([input_stage, *propagations, output_stage], unused_bytes=4 * unused_weights)
