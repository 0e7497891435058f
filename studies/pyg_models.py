"""PyG models that studies.own_models trains as they are: modules as users write them."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.nn import PNA, GATv2Conv, JumpingKnowledge, SAGEConv


class GatV2(nn.Module):
    """Two GATv2 layers, with the settings that GAT's authors have for Cora."""

    def __init__(self, in_channels: int, out_channels: int, hidden: int = 8, heads: int = 8) -> None:
        super().__init__()
        self.first = GATv2Conv(in_channels, hidden, heads, dropout=0.6)
        self.second = GATv2Conv(hidden * heads, out_channels, dropout=0.6)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        hidden = functional.elu(self.first(functional.dropout(x, 0.6, self.training), edge_index))
        return self.second(functional.dropout(hidden, 0.6, self.training), edge_index)


class Jumping(nn.Module):
    """Jumping knowledge over two SAGE layers with BatchNorm."""

    def __init__(self, in_channels: int, out_channels: int, hidden: int = 64) -> None:
        super().__init__()
        self.first, self.norm, self.second = SAGEConv(in_channels, hidden), nn.BatchNorm1d(hidden), SAGEConv(hidden, 64)
        self.jump, self.head = JumpingKnowledge("cat"), nn.Linear(hidden + 64, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        first = functional.dropout(self.norm(self.first(x, edge_index)).relu(), 0.5, self.training)
        second = functional.dropout(self.second(first, edge_index).relu(), 0.5, self.training)
        return self.head(self.jump([first, second]))


class Pna(nn.Module):
    """PyG's PNA on 32 features made of Cora's 1,433, as its authors embed theirs: a message is as wide as the features,
    and nine aggregates of it are kept. PNA wants a histogram of the degrees: Cora's, up to ten."""

    def __init__(self, in_channels: int, out_channels: int, hidden: int = 32) -> None:
        super().__init__()
        degrees = torch.tensor([0, 485, 583, 553, 389, 281, 131, 82, 57, 25, 122])
        aggregators, scalers = ["mean", "max", "std"], ["identity", "amplification", "attenuation"]
        self.embed = nn.Linear(in_channels, hidden)
        kinds: dict[str, Any] = {"aggregators": aggregators, "scalers": scalers, "deg": degrees}
        norm: dict[str, Any] = {"norm": "layer_norm", "norm_kwargs": {"mode": "node"}}
        self.layers = PNA(hidden, hidden, 2, out_channels, dropout=0.5, **norm, **kinds)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.layers(functional.dropout(self.embed(x), 0.5, self.training), edge_index)
