"""Models as users write them: PyG modules, one that reads blocks, and some that cannot work."""

import ctypes
import os
import threading
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch_geometric.nn import PNA, GATv2Conv, GCNConv, JumpingKnowledge, SAGEConv
from torch_geometric.utils import scatter

from llcg_dist.sampling.block import Block


class GatV2(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, hidden: int = 4, heads: int = 2) -> None:
        super().__init__()
        self.first = GATv2Conv(in_channels, hidden, heads)
        self.second = GATv2Conv(hidden * heads, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.second(self.first(x, edge_index).relu(), edge_index)


class Jumping(nn.Module):
    """Jumping knowledge over two SAGE layers, with BatchNorm and dropout."""

    def __init__(self, in_channels: int, out_channels: int, hidden: int = 8) -> None:
        super().__init__()
        self.first, self.norm, self.second = SAGEConv(-1, hidden), nn.BatchNorm1d(hidden), SAGEConv(hidden, hidden)
        self.jump, self.head = JumpingKnowledge("cat"), nn.Linear(2 * hidden, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        first = self.norm(self.first(x, edge_index)).relu()
        second = self.second(nn.functional.dropout(first, 0.5, self.training), edge_index).relu()
        return self.head(self.jump([first, second]))


def pna(in_channels: int, out_channels: int, hidden: int = 8) -> nn.Module:
    degree = torch.tensor([1, 4, 9, 6, 3, 1])
    scalers, aggregators = ["identity", "amplification"], ["mean", "max"]
    return PNA(in_channels, hidden, 2, out_channels, aggregators=aggregators, scalers=scalers, deg=degree)


class OnBlocks(nn.Module):
    """Our shape: `depth`, and a block per layer."""

    depth = 2

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(in_channels, 8), nn.Linear(8, out_channels)

    def forward(self, x: Tensor, blocks: Sequence[Block]) -> Tensor:
        for layer, block in zip((self.first, self.second), blocks, strict=True):
            x = layer(block.mean_adjacency @ x + block.dst_rows(x)).tanh()
        return x


class Cached(nn.Module):
    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.conv = GCNConv(in_channels, out_channels, cached=True)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.conv(x, edge_index)


class WholeGraph(nn.Module):
    """Adds the mean over all nodes: no number of hops gives the exact output."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.conv = SAGEConv(in_channels, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h = self.conv(x, edge_index)
        return h + scatter(h, torch.zeros(len(h), dtype=torch.long), reduce="mean")


class Tied(nn.Module):
    """Two layers that share their weight, and one weight that is never trained."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(in_channels), requires_grad=False)
        self.first, self.second = nn.Linear(in_channels, in_channels), nn.Linear(in_channels, in_channels)
        self.second.weight = self.first.weight
        self.conv = SAGEConv(in_channels, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.conv(self.second(self.first(x * self.scale).relu()).relu(), edge_index)


class InDouble(nn.Module):
    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.linear = nn.Linear(in_channels, out_channels).double()

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.linear(x.double()).float()


class AllInDouble(nn.Module):
    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.conv = SAGEConv(in_channels, out_channels).double()

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.conv(x, edge_index)


class NoSuchLayer(nn.Module):
    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.conv = SAGEConv(in_channels, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.con(x, edge_index)  # type: ignore[operator]


class OneVector(nn.Module):
    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.linear = nn.Linear(in_channels, 1)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.linear(x).squeeze()


class OfWidth(nn.Module):
    """Has so many outputs more than there are classes."""

    def __init__(self, in_channels: int, out_channels: int, more: int) -> None:
        super().__init__()
        self.conv = SAGEConv(in_channels, out_channels + more)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.conv(x, edge_index)


class WideOnBlocks(nn.Module):
    """One output more than there are classes, from the blocks of one layer."""

    depth = 1

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.linear = nn.Linear(in_channels, out_channels + 1)

    def forward(self, x: Tensor, blocks: Sequence[Block]) -> Tensor:
        return self.linear(x[: len(blocks[-1].indptr) - 1])


class SparseProduct(nn.Module):
    """Sums the neighbours' features by a sparse matrix of torch's."""

    def __init__(self, in_channels: int, out_channels: int, layout: str = "coo") -> None:
        super().__init__()
        self.linear, self._layout = nn.Linear(in_channels, out_channels), layout

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        ones = torch.ones(edge_index.shape[1])
        matrix = torch.sparse_coo_tensor(edge_index.flip(0), ones, (len(x), len(x)))
        return (matrix.to_sparse_csr() if self._layout == "csr" else matrix) @ self.linear(x)


class FailsOnBatches(nn.Module):
    """Works on the small graph that tells how far a module looks, and on no batch."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.conv, self._names = SAGEConv(in_channels, out_channels), list(range(100))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        _ = self._names[len(x)]
        return self.conv(x, edge_index)


def no_module(in_channels: int, out_channels: int) -> int:
    return in_channels


class Stuck(nn.Module):
    """Does not come back from its forward pass, in the process of one rank, once it has been called often enough: it
    waits for a lock that nobody lets go, in Python or, where no signal wakes it, in the C library."""

    def __init__(
        self, in_channels: int, out_channels: int, rank: int, calls: int, in_c: bool = False, raises: bool = False
    ) -> None:
        super().__init__()
        self.conv = SAGEConv(in_channels, out_channels)
        self._rank, self._calls, self._in_c, self._raises = rank, calls, in_c, raises

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        of_interest = self.training if self._rank else not self.training and len(x) > 500  # steps, evaluations
        if of_interest and os.environ.get("RANK") == str(self._rank):
            self._calls -= 1
            if self._calls < 0:
                self._misbehave()
        return self.conv(x, edge_index)

    def _misbehave(self) -> None:
        if self._raises:
            raise RuntimeError("the sky\nis falling")
        if self._in_c:
            mutex = ctypes.create_string_buffer(64)  # zeros are PTHREAD_MUTEX_INITIALIZER
            for _ in range(2):
                ctypes.CDLL(None).pthread_mutex_lock(mutex)
        lock = threading.Lock()
        while lock.acquire():
            pass
