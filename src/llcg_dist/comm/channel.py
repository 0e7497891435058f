"""The two ends of the line between server and machines. Model parameters and a short report cross it; a method that
shares every step also sends gradients, and one that reads remote features fetches their rows from other machines.

Transports: `dist_channel.py` (real processes) and `loopback.py` (one process). Both give the server the machines'
updates in part order and keep the same ledger, so a run has the same bits and the same byte counts on either.
"""

from collections.abc import Generator, Sequence
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
    feature_pairs: int = 0
    """Fetches of remote features times other machines, and the bytes that these moved: see features.py."""
    feature_id_bytes: int = 0
    feature_row_bytes: int = 0

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
    """What the server sends at the start of a round: the model, and up to which round all ranks have checkpoints.

    The model as core/exchange.py writes it; a machine reads it with `Trainee.receive`. None where the machines hold it
    already, because every step is shared (full_sync)."""

    theta: Tensor | None
    whole_round: int = 0


@dataclass(frozen=True)
class Update:
    """What a machine sends at the end of a round: its parameters, as core/exchange.py writes them, and its report.

    Only the parameters that are not the same everywhere: where every step is shared, BatchNorm's statistics."""

    theta: Tensor
    report: Report


MachineRound = Generator[Tensor, Tensor, Update]
"""A machine's round: yields its gradient where it waits for everyone's mean, and returns its update."""


@dataclass(frozen=True)
class Sizes:
    """What the messages of a job hold: elements of the model and of an update (of `dtype`), of a gradient (float32)."""

    model: int
    update: int
    gradient: int
    model_every_round: bool = True
    """Otherwise the model crosses once, at the start."""
    dtype: torch.dtype = torch.float32


class Trainee(Protocol):
    """A machine, as the round loop and the loopback see it."""

    def receive(self, order: Order) -> Order:
        """Reads the model in it; once for every order."""

    def measures(self, round_: int) -> bool:
        """Whether this round begins with diagnostics."""

    def measure(self, theta: Tensor) -> Tensor:
        """The gradient there over all that this machine trains on."""

    def learn(self, order: Order, round_: int) -> MachineRound:
        """Its part of the round, from an order that it has read."""


class ServerChannel(Protocol):
    ledger: Ledger
    parallel: bool
    """Machines work at the same time, not in turns."""

    def broadcast(self, order: Order) -> None:
        """Sends the model to every machine; returns before they have trained on it."""

    def gather_gradients(self, round_: int) -> Sequence[Tensor]:
        """Waits for every machine's gradient of its next step; in part order."""

    def broadcast_gradient(self, mean: Tensor) -> None:
        """The gradient that every machine takes its step along."""

    def gather_measured(self) -> Sequence[Tensor]:
        """Waits for every machine's gradient at the model that was just sent (diagnostics); in part order."""

    def gather(self, round_: int) -> Sequence[Update]:
        """Waits for every machine's update of this round; in part order."""


class MachineChannel(Protocol):
    def receive(self) -> Order: ...

    def mean_gradient(self, own: Tensor) -> Tensor:
        """Sends the own gradient and waits for the mean of all."""

    def send_measured(self, gradient: Tensor) -> None:
        """The own gradient at the model that was just received; nothing comes back."""

    def send(self, update: Update) -> None: ...
