"""All machines in the server's own process: for tests, for sweeps, and for methods whose only machine is rank 0."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from llcg_dist.comm.channel import Order, Update
from llcg_dist.comm.ledger import Direction, Kind, Ledger, Message

MachineRound = Callable[[Order, int], Update]
"""(order, round) -> update: one machine's part of a round."""


class LoopbackChannel:
    """Machines take their turns inside `gather`. `metered=False`: they are the server itself, nothing crosses."""

    parallel = False

    def __init__(self, machines: Sequence[MachineRound], ledger: Ledger, metered: bool = True) -> None:
        self._machines = machines
        self._metered = metered
        self.ledger = ledger

    def broadcast(self, order: Order) -> None:
        self._order = order
        self._count(torch.tensor([order.whole_round]), Kind.CONTROL, Direction.DOWN)
        self._count(order.theta, Kind.PARAMETERS, Direction.DOWN)

    def gather(self, round_: int) -> Sequence[Update]:
        updates = [machine(self._order, round_) for machine in self._machines]
        for update in updates[:1]:
            self._count(update.theta, Kind.PARAMETERS, Direction.UP)
            self._count(update.report.pack(), Kind.CONTROL, Direction.UP)
        return updates

    def _count(self, tensor: Tensor, kind: Kind, direction: Direction) -> None:
        if self._metered and self._machines:
            self.ledger.count(Message.of(tensor, kind, direction), len(self._machines))
