"""Models spelled as the paper spells them: a string over G (GCN), S (SAGE), L (linear) and B (BatchNorm)."""

from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn import functional

from llcg_dist.models.layers import Gcn, Sage
from llcg_dist.sampling import Block


class ArchModel(nn.Module):
    """SBSBS: SAGE, BatchNorm, SAGE, BatchNorm, SAGE.

    ReLU and dropout stand before every G, S or L but the first. A leading B normalises the input and has no affine
    weights. `depth` counts the layers that pass messages, each of which takes one block.
    """

    def __init__(
        self, arch: str, num_features: int, hidden: int, num_classes: int, dropout: float, gcn_norm: str
    ) -> None:
        super().__init__()
        self.arch, self.dropout = arch, dropout
        self.depth = sum(letter in "GS" for letter in arch)
        self.layers = nn.ModuleList()
        last = max(arch.rfind(letter) for letter in "GSL")
        width = num_features
        for position, letter in enumerate(arch):
            if letter == "B":
                self.layers.append(nn.BatchNorm1d(width, affine=position > 0))
                continue
            width_out = num_classes if position == last else hidden
            if letter == "S":
                self.layers.append(Sage(width, width_out))
            elif letter == "G":
                self.layers.append(Gcn(width, width_out, gcn_norm))
            else:
                self.layers.append(nn.Linear(width, width_out))
            width = width_out

    def forward(self, x: Tensor, blocks: Sequence[Block]) -> Tensor:
        """x [inputs, F], one block per message-passing layer -> logits [outputs, C]."""
        remaining = iter(blocks)
        hidden = False
        for layer in self.layers:
            if isinstance(layer, nn.BatchNorm1d):
                x = layer(x)
                continue
            if hidden:
                x = functional.dropout(x.relu(), self.dropout, self.training)
            hidden = True
            x = layer(x) if isinstance(layer, nn.Linear) else layer(x, next(remaining))
        return x
