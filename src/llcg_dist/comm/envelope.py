"""Control and content in one message: a small message of its own costs more time than its bytes."""

from collections.abc import Iterator

import torch
from torch import Tensor

from llcg_dist.comm.ledger import Direction, Kind, Message


class Envelope:
    """One buffer of bytes that crosses, and its two halves as tensors; counted as two messages, for what they are.

    Made once and used in every round: memory that is new to a process costs as much time as filling it.
    """

    def __init__(self, control: Tensor, elements: int, dtype: torch.dtype, device: str) -> None:
        """`control` shows the shape of that half, of 8-byte numbers; `elements` of `dtype` are the other."""
        head = control.nbytes
        self.bytes = torch.zeros(head + elements * dtype.itemsize, dtype=torch.uint8, device=device)
        self.control = self.bytes[:head].view(control.dtype)
        self.content = self.bytes[head:].view(dtype)

    def messages(self, kind: Kind, direction: Direction) -> Iterator[Message]:
        halves = ((self.content, kind), (self.control, Kind.CONTROL))
        return (Message.of(half, kind, direction) for half, kind in halves if half.numel())
