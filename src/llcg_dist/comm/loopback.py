"""All machines in the server's own process: for tests, for sweeps, and for methods whose only machine is rank 0."""

from collections.abc import Sequence

import torch
from torch import Tensor

from llcg_dist.comm.channel import MachineProtocol
from llcg_dist.comm.ledger import Direction, Kind, Ledger, Message
from llcg_dist.comm.messages import MachineRound, TrainRequest, Update
from llcg_dist.comm.remote_rows import FeatureTraffic, count_features


class LoopbackChannel:
    """Machines take their turns, up to their next gradient or to their update. `metered=False`: they are the server
    itself, nothing crosses."""

    parallel = False

    def __init__(self, machines: Sequence[MachineProtocol], ledger: Ledger, metered: bool = True) -> None:
        self._machines = machines
        self._rounds: list[MachineRound] = []
        self._mean: Tensor | None = None
        self._metered = metered
        self.ledger = ledger

    def broadcast(self, request: TrainRequest) -> None:
        self._requests = [machine.receive(request) for machine in self._machines]
        if request.theta is not None:
            self._count(request.theta, Kind.PARAMETERS, Direction.DOWN)
        self._count(torch.tensor([request.durable_round]), Kind.CONTROL, Direction.DOWN)

    def gather_gradients(self, round_: int) -> Sequence[Tensor]:
        gradients = [machine.send(self._mean) for machine in self._started(round_)]  # type: ignore[arg-type]
        self._count(gradients[0], Kind.GRADIENTS, Direction.UP)
        return gradients

    def broadcast_gradient(self, mean: Tensor) -> None:
        self._mean = mean
        self._count(mean, Kind.GRADIENTS, Direction.DOWN)

    def gather_measured(self) -> Sequence[Tensor]:
        gradients = []
        for machine, request in zip(self._machines, self._requests, strict=True):
            assert request.theta is not None
            gradients.append(machine.measure(request.theta))
        with self.ledger.also_allowing(Kind.GRADIENTS):
            self._count(gradients[0], Kind.GRADIENTS, Direction.UP)
        return gradients

    def gather(self, round_: int) -> Sequence[Update]:
        updates = [self._finish(machine) for machine in self._started(round_)]
        self._rounds, self._mean = [], None
        for update in updates[:1]:
            if update.theta.numel():
                self._count(update.theta, Kind.PARAMETERS, Direction.UP)
            self._count(update.stats.pack(), Kind.CONTROL, Direction.UP)
        for update in updates:
            count_features(update.stats, self.ledger)
        return updates

    def _started(self, round_: int) -> list[MachineRound]:
        if not self._rounds:
            turns = zip(self._machines, self._requests, strict=True)
            self._rounds = [machine.learn(request, round_) for machine, request in turns]
        return self._rounds

    def _finish(self, machine: MachineRound) -> Update:
        try:
            machine.send(self._mean)  # type: ignore[arg-type]
        except StopIteration as ended:
            return ended.value
        raise RuntimeError("a machine sent a gradient where its update was due")

    def _count(self, tensor: Tensor, kind: Kind, direction: Direction) -> None:
        if self._metered and self._machines:
            self.ledger.count(Message.of(tensor, kind, direction), len(self._machines))


class LoopbackRows:
    """Features of every part in one process; counts what would have crossed."""

    def __init__(self, features: Sequence[Tensor], traffic: FeatureTraffic) -> None:
        self._features, self._traffic = features, traffic

    def fetch(self, wanted: list[Tensor]) -> list[Tensor]:
        rows = [features[numbers] for features, numbers in zip(self._features, wanted, strict=True)]
        self._traffic.note(wanted, rows, peers=len(self._features) - 1)
        return rows
