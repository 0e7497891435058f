"""A model over blocks as an ordinary module of PyG's kind: forward(x, edge_index) over a whole graph."""

import torch
from torch import Tensor, nn

from llcg_dist.data.csr import undirected_csr
from llcg_dist.models.base import Model
from llcg_dist.sampling.block import Block


class FullGraphModel(nn.Module):
    """x [N, F] and edge_index [2, M] -> logits [N, C], every node from all its neighbours.

    The graph is made undirected, without duplicates and self-loops, as the one that the model was trained on.
    """

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        block = _full_block(edge_index, len(x)).to(str(x.device))
        return self.model(x.float(), [block] * self.model.depth)


def _full_block(edge_index: Tensor, num_nodes: int) -> Block:
    """The square block [N, N] of the undirected graph."""
    src, dst = edge_index.detach().cpu().numpy()
    indptr, indices = (torch.from_numpy(array) for array in undirected_csr(src, dst, num_nodes))
    return Block(indptr, indices, num_nodes, num_nodes, indptr.diff().float())
