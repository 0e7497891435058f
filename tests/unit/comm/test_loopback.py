"""Machines in the server's own process, counted as if they were apart."""

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from llcg_dist.comm.ledger import Kind, Ledger, Traffic
from llcg_dist.comm.loopback import LoopbackChannel
from llcg_dist.comm.messages import MachineRound, TrainRequest, TrainStats, Update
from llcg_dist.errors import ProtocolError

PARAMETERS = frozenset({Kind.PARAMETERS})


@dataclass(frozen=True)
class Adds:
    """A machine that adds a number to what it is sent, and tells the round as its loss. Where it shares gradients, it
    sends its number times the step and adds up the means."""

    number: float
    gradients: int = 0

    def receive(self, request: TrainRequest) -> TrainRequest:
        return request

    def measures(self, round_: int) -> bool:
        return True

    def measure(self, theta: Tensor) -> Tensor:
        return theta * self.number

    def learn(self, request: TrainRequest, round_: int) -> MachineRound:
        assert request.theta is not None
        total = request.theta + self.number
        for step in range(self.gradients):
            total = total + (yield torch.full((4,), self.number * (step + 1))).sum()
        return Update(total, TrainStats(float(round_), 0.5, 3, 100.0))


def channel(*numbers: float, metered: bool = True) -> LoopbackChannel:
    return LoopbackChannel([Adds(number) for number in numbers], Ledger(PARAMETERS), metered)


def test_updates_come_in_part_order_from_the_model_that_was_sent() -> None:
    line = channel(1.0, 2.0, 4.0)
    for round_, start in ((7, 0.0), (8, 10.0)):
        line.broadcast(TrainRequest(torch.full((5,), start)))
        updates = line.gather(round_)
        assert [update.theta.tolist() for update in updates] == [[start + n] * 5 for n in (1.0, 2.0, 4.0)]
        assert [update.stats.train_loss for update in updates] == [round_] * 3


def test_bytes_of_a_round() -> None:
    """Three machines: five float32 each way, stats of float64 up, one int64 down."""
    line = channel(1.0, 2.0, 4.0)
    control = 3 * (8 * TrainStats.size() + 8)
    for round_ in (1, 2):
        line.broadcast(TrainRequest(torch.zeros(5)))
        line.gather(round_)
        assert line.ledger.end_round() == Traffic(60, 60, 0, 0, control, 1)
    assert line.ledger.total_bytes() == 2 * (60 + 60 + control)
    rows = [row for row in line.ledger.as_json()["messages"] if row["kind"] == "parameters"]
    shapes = {(row["direction"], row["dtype"], row["elements"], row["count"], row["phase"]) for row in rows}
    assert shapes == {("down", "float32", 5, 6, "round"), ("up", "float32", 5, 6, "round")}


@pytest.mark.parametrize("line", [channel(1.0, metered=False), channel()], ids=["the server itself", "no machine"])
def test_where_nothing_crosses_nothing_is_counted(line: LoopbackChannel) -> None:
    line.broadcast(TrainRequest(torch.zeros(5)))
    line.gather(1)
    assert line.ledger.end_round() == Traffic(0, 0, 0, 0, 0, 0)
    assert line.ledger.total_bytes() == 0


def test_machines_that_share_gradients_go_in_step() -> None:
    """Two machines, two steps: four float32 up and down for each machine and step."""
    line = LoopbackChannel([Adds(1.0, 2), Adds(3.0, 2)], Ledger(PARAMETERS | {Kind.GRADIENTS}))
    for round_ in (1, 2):
        line.broadcast(TrainRequest(torch.zeros(5)))
        for step in (1.0, 2.0):
            gradients = line.gather_gradients(round_)
            assert [gradient.tolist() for gradient in gradients] == [[step] * 4, [3 * step] * 4]
            line.broadcast_gradient(torch.full((4,), step))
        assert [update.theta.tolist() for update in line.gather(round_)] == [[1.0 + 12] * 5, [3.0 + 12] * 5]
        traffic = line.ledger.end_round()
        assert (traffic.gradient_bytes, traffic.exchanges) == (2 * 2 * 2 * 16, 2)


def test_a_machine_that_has_more_gradients_than_the_round_has_steps_is_noticed() -> None:
    line = LoopbackChannel([Adds(1.0, 2)], Ledger(PARAMETERS | {Kind.GRADIENTS}))
    line.broadcast(TrainRequest(torch.zeros(5)))
    with pytest.raises(RuntimeError, match="a gradient where its update was due"):
        line.gather(1)


def test_a_kind_that_is_not_allowed_is_refused() -> None:
    line = LoopbackChannel([Adds(1.0)], Ledger(frozenset()))
    with pytest.raises(ProtocolError, match="parameters must not cross"):
        line.broadcast(TrainRequest(torch.zeros(5)))


def test_gradients_that_are_measured_are_counted_apart() -> None:
    line = channel(1.0, 2.0)
    line.broadcast(TrainRequest(torch.ones(5)))
    assert [gradient.tolist() for gradient in line.gather_measured()] == [[1.0] * 5, [2.0] * 5]
    line.gather(1)
    assert line.ledger.end_round().gradient_bytes == 2 * 5 * 4


def test_machines_take_turns() -> None:
    assert channel(1.0).parallel is False
