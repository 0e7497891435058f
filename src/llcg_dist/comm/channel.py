"""The two ends of the line between server and machines. Model parameters and a short report cross it; a method that
shares every step also sends gradients, and one that reads remote features fetches their rows from other machines.

Transports: `process_channel.py` (real processes) and `loopback.py` (one process). Both give the server the machines'
updates in part order and keep the same ledger, so a run has the same bits and the same byte counts on either.
"""

from collections.abc import Sequence
from typing import Protocol

from torch import Tensor

from llcg_dist.comm.ledger import Ledger
from llcg_dist.comm.messages import MachineRound, TrainRequest, Update


class MachineProtocol(Protocol):
    """A machine, as the round loop and the loopback see it."""

    def receive(self, request: TrainRequest) -> TrainRequest:
        """Reads the model in it; once for every order."""

    def measures(self, round_: int) -> bool:
        """Whether this round begins with diagnostics."""

    def measure(self, theta: Tensor) -> Tensor:
        """The gradient there over all that this machine trains on."""

    def learn(self, request: TrainRequest, round_: int) -> MachineRound:
        """Its part of the round, from an order that it has read."""


class ServerChannel(Protocol):
    ledger: Ledger
    parallel: bool
    """Machines work at the same time, not in turns."""

    def broadcast(self, request: TrainRequest) -> None:
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
    def receive(self) -> TrainRequest: ...

    def mean_gradient(self, own: Tensor) -> Tensor:
        """Sends the own gradient and waits for the mean of all."""

    def send_measured(self, gradient: Tensor) -> None:
        """The own gradient at the model that was just received; nothing comes back."""

    def send(self, update: Update) -> None: ...
