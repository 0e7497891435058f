"""SAGE, GCN and GAT layers on blocks. Parameters are those of PyG's layers; SAGE and GCN use faster sparse products."""

from torch import Tensor
from torch_geometric.nn import GATConv, GCNConv, SAGEConv
from torch_geometric.nn.dense.linear import Linear

from llcg_dist.models.stages import BlockLayer, ProductLayer
from llcg_dist.sampling.block import Block
from llcg_dist.sampling.sparse_matrix import SparseMatrix


class Sage(ProductLayer):
    r"""GraphSAGE with mean aggregation: :math:`W_1 x_i + b_1 + W_2 \mathrm{mean}_{j \in N(i)} x_j + b_2`.

    x [num_src, in] -> [num_dst, out]. As in the paper's models both linear maps have a bias; PyG's layer has one.
    """

    accepts_lazy_rows = True

    def __init__(self, width_in: int, width_out: int) -> None:
        super().__init__()
        self.conv = SAGEConv(width_in, width_out, aggr="mean")
        self.conv.lin_r = Linear(width_in, width_out, bias=True)

    @property
    def weight(self) -> Tensor:
        return self.conv.lin_l.weight

    @property
    def self_weight(self) -> Tensor:
        return self.conv.lin_r.weight

    @property
    def bias(self) -> Tensor:
        return self.conv.lin_r.bias + self.conv.lin_l.bias

    def adjacency(self, block: Block) -> SparseMatrix:
        return block.mean_adjacency


class Gcn(ProductLayer):
    r"""Graph convolution :math:`\hat{A} X W + b`; :math:`\hat{A}` is Block.gcn_adjacency, with self-loops.

    x [num_src, in] -> [num_dst, out].
    """

    def __init__(self, width_in: int, width_out: int, norm: str) -> None:
        super().__init__()
        self.norm = norm
        self.conv = GCNConv(width_in, width_out, normalize=False)

    @property
    def weight(self) -> Tensor:
        return self.conv.lin.weight

    @property
    def bias(self) -> Tensor:
        return self.conv.bias

    def adjacency(self, block: Block) -> SparseMatrix:
        return block.gcn_adjacency(self.norm)


class Gat(BlockLayer):
    r"""Graph attention :math:`\sum_{j \in N(i) \cup \{i\}} \alpha_{ij} W x_j + b`, the weights :math:`\alpha_{ij}` a
    softmax over j of :math:`\mathrm{LeakyReLU}(a_{dst} \cdot W x_i + a_{src} \cdot W x_j)`.

    x [num_src, in] -> [num_dst, heads * width_head], or [num_dst, width_head] where heads are averaged.

    A node attends to itself and to those of its neighbours that the block holds. Block.attention_adjacency has exactly
    one self-loop per row, so PyG's `add_self_loops` is off, and a block with all neighbours gives the output of the
    full graph. With one head a layer has one bias and 2 * out attention weights, as in the paper.
    """

    def __init__(self, width_in: int, width_head: int, heads: int, average_heads: bool) -> None:
        super().__init__()
        self.conv = GATConv(width_in, width_head, heads, concat=not average_heads, add_self_loops=False)

    def forward(self, x: Tensor, block: Block) -> Tensor:
        return self.conv((x, block.dst_rows(x)), block.attention_adjacency)
