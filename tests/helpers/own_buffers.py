"""Modules of a user's that keep a running mean in a buffer: changed in place, or replaced by every forward pass."""

import torch
from torch import Tensor, nn
from torch_geometric.nn import SAGEConv


class Centred(nn.Module):
    """Keeps a running mean of its inputs in a buffer, which it changes in place."""

    center: Tensor

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.conv = SAGEConv(in_channels, out_channels)
        self.register_buffer("center", torch.zeros(in_channels))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        if self.training:
            self.keep(0.9 * self.center + 0.1 * x.mean(dim=0))
        return self.conv(x - self.center, edge_index)

    def keep(self, center: Tensor) -> None:
        self.center.copy_(center)


class CentredAnew(Centred):
    """Puts a new tensor in the buffer's place every time; of another shape where it `grows`, the first one where it is
    `late`."""

    def __init__(self, in_channels: int, out_channels: int, grows: bool = False, late: bool = False) -> None:
        super().__init__(in_channels, out_channels)
        self._grows, self._zeros = grows, torch.zeros(in_channels)
        if late:
            self.register_buffer("center", None)

    def keep(self, center: Tensor) -> None:
        self.center = torch.cat([center, center[:1]]) if self._grows else center

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        if self.training:
            self.keep(0.9 * self._known(x) + 0.1 * x.mean(dim=0))
        return self.conv(x - self._known(x), edge_index)

    def _known(self, x: Tensor) -> Tensor:
        return self._zeros if self.center is None else self.center[: x.shape[1]]
