"""The two ends of the line between server and machines. Only model parameters and a short report cross it.

Transports: `torch_dist.py` (real processes) and `loopback.py` (one process). Both give the server the machines' updates
in part order and keep the same ledger, so a run has the same bits and the same byte counts on either.
"""

from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from typing import Protocol

import torch
from torch import Tensor

from llcg_dist.comm.ledger import Ledger


@dataclass(frozen=True)
class Report:
    """What a machine tells about its round; crosses as a few float64 (control)."""

    train_loss: float
    seconds_local: float
    steps: int
    peak_rss_mb: float
    checkpoint_round: int = 0
    """The newest round that the machine has safely on its disk."""
    checkpoint_failed: int = 0
    seconds_checkpoint: float = 0.0
    checkpoint_bytes: int = 0

    def pack(self) -> Tensor:
        return torch.tensor(astuple(self), dtype=torch.float64)

    @staticmethod
    def unpack(values: Tensor) -> "Report":
        typed = (f.type(value) for f, value in zip(fields(Report), values.tolist(), strict=True))  # type: ignore[operator]
        return Report(*typed)

    @staticmethod
    def size() -> int:
        return len(fields(Report))


@dataclass(frozen=True)
class Order:
    """What the server sends at the start of a round: the model, and up to which round all ranks have checkpoints."""

    theta: Tensor
    whole_round: int = 0


@dataclass(frozen=True)
class Update:
    """What a machine sends at the end of a round: its parameters and its report."""

    theta: Tensor
    report: Report


class ServerChannel(Protocol):
    ledger: Ledger
    parallel: bool
    """Machines work at the same time, not in turns."""

    def broadcast(self, order: Order) -> None:
        """Sends the model to every machine; returns before they have trained on it."""

    def gather(self, round_: int) -> Sequence[Update]:
        """Waits for every machine's update of this round; in part order."""


class MachineChannel(Protocol):
    def receive(self) -> Order: ...

    def send(self, update: Update) -> None: ...
