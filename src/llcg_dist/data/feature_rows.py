"""Rows of features that stay in their table until someone needs them side by side."""

from dataclasses import dataclass
from typing import Union

import torch
from torch import Tensor


@dataclass(frozen=True)
class LazyRows:
    """table[nodes], not copied yet: a first layer that sums neighbours up reads most of them where they are.

    It is called like the tensor that it stands for, and becomes one where the rows are wanted on another device or in
    another type.
    """

    table: Tensor
    nodes: Tensor
    requires_grad = False

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.nodes), self.table.shape[1]

    @property
    def nbytes(self) -> int:
        """What is held besides the table."""
        return self.nodes.nbytes

    def __len__(self) -> int:
        return len(self.nodes)

    def __getitem__(self, rows: slice | Tensor) -> Tensor:
        return self.table.index_select(0, self.nodes[rows])  # half the time of table[nodes[rows]]

    def materialize(self) -> Tensor:
        return self[:]

    def to(self, device: str) -> "Rows":
        return self if self.table.device.type == torch.device(device).type else self.materialize().to(device)

    def float(self) -> "Rows":
        return self if self.table.dtype == torch.float32 else self.materialize().float()


Rows = Union[Tensor, LazyRows]  # noqa: UP007 - the class above names it before it exists


def materialize(x: Rows) -> Tensor:
    return x.materialize() if isinstance(x, LazyRows) else x
