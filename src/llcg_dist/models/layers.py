"""PyG's layers, fed with a block instead of an edge list."""

from torch import Tensor, nn
from torch_geometric.nn import GCNConv, SAGEConv
from torch_geometric.nn.dense.linear import Linear

from llcg_dist.sampling import Block


class Sage(nn.Module):
    r"""GraphSAGE with mean aggregation: :math:`W_1 x_i + b_1 + W_2 \mathrm{mean}_{j \in N(i)} x_j + b_2`.

    x [num_src, in] -> [num_dst, out]. As in the paper's models both linear maps have a bias; PyG's layer has one.
    """

    def __init__(self, width_in: int, width_out: int) -> None:
        super().__init__()
        self.conv = SAGEConv(width_in, width_out, aggr="mean")
        self.conv.lin_r = Linear(width_in, width_out, bias=True)

    def forward(self, x: Tensor, block: Block) -> Tensor:
        return self.conv((x, x[: block.num_dst]), block.adjacency)


class Gcn(nn.Module):
    r"""Graph convolution :math:`\hat{A} X W + b` with self-loops in the normalised :math:`\hat{A}` (see Block).

    x [num_src, in] -> [num_dst, out].
    """

    def __init__(self, width_in: int, width_out: int, norm: str) -> None:
        super().__init__()
        self.norm = norm
        self.conv = GCNConv(width_in, width_out, normalize=False)

    def forward(self, x: Tensor, block: Block) -> Tensor:
        return self.conv(x, block.gcn_adjacency(self.norm))
