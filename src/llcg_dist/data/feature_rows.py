"""Lazily gathered rows of a feature matrix."""

from dataclasses import dataclass
from typing import Union

import torch
from torch import Tensor

from llcg_dist.data.upload import upload


@dataclass(frozen=True)
class LazyRows:
    """table[nodes], not gathered yet: a first layer that aggregates neighbours reads the table's rows in place.

    Has the methods of a tensor that training uses; `to` and `float` gather the rows where device or dtype change. The
    table may be on the device already, and the nodes still on the host.
    """

    table: Tensor
    nodes: Tensor
    requires_grad = False

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.nodes), self.table.shape[1]

    @property
    def nbytes(self) -> int:
        """Bytes held in addition to the table."""
        return self.nodes.nbytes

    def __len__(self) -> int:
        return len(self.nodes)

    def __getitem__(self, rows: slice | Tensor) -> Tensor:
        return self.table.index_select(0, self.nodes[rows])  # half the time of table[nodes[rows]]

    def materialize(self) -> Tensor:
        """[len(nodes), F], copied out of the table."""
        return self[:]

    def to(self, device: str) -> "Rows":
        kind = torch.device(device).type
        if self.table.device.type != kind:
            return upload(self.materialize(), device)
        return self if self.nodes.device.type == kind else LazyRows(self.table, upload(self.nodes, device))

    def float(self) -> "Rows":
        return self if self.table.dtype == torch.float32 else self.materialize().float()


Rows = Union[Tensor, LazyRows]  # noqa: UP007 - LazyRows refers to it before it is defined


def materialize(x: Rows) -> Tensor:
    """The rows as a tensor; a tensor is returned as it is."""
    return x.materialize() if isinstance(x, LazyRows) else x
