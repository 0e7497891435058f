"""The round loop with machines that only add a number: what is called, in which order, and what a bad reply does."""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import torch
from torch import Tensor

from llcg_dist.algorithms.base import Algorithm
from llcg_dist.comm.messages import Message, Train, TrainStats
from llcg_dist.config.compose import load_config
from llcg_dist.errors import PeerLostError, TrainingError
from llcg_dist.job.round_loop import run_rounds
from llcg_dist.job.server import Server
from llcg_dist.records.rows import RoundResult
from llcg_dist.training.screening import Models, Screener
from tests.helpers.fake_machines import Adds, loopback_channel

SIZE = 4
NO_STATISTICS = torch.zeros(SIZE, dtype=torch.bool)


class Corrects(Algorithm):
    """The server's correction adds 0.5."""

    def correct_beside(self, theta: Tensor, round_: int, corrector: Any) -> None:
        if corrector is not None:
            corrector(theta, round_)

    def correct(self, theta: Tensor, models: Models, corrector: Any) -> Tensor:
        return theta + 0.5


@dataclass
class FakeServer:
    """What the loop asks of a server, written down."""

    machines: list[Adds]
    overrides: list[str] = field(default_factory=list)
    num_rounds: int = 3
    calls: list[str] = field(default_factory=list)
    results: list[RoundResult] = field(default_factory=list)
    durable_round: int = 0
    corrector: Any = None

    def __post_init__(self) -> None:
        config = load_config(["algorithm=psgd_pa", f"cluster.num_machines={len(self.machines)}", *self.overrides])
        self.algorithm = Corrects(config)
        self.channel = loopback_channel(self.machines, SIZE)
        self.screener = Screener(config, [1.0] * len(self.machines), NO_STATISTICS, self.channel.names)

    def rounds_from(self, first_round: int) -> range:
        return range(first_round, self.num_rounds + 1)

    def request_measurements(self, theta: Tensor, round_: int) -> None:
        self.calls.append(f"measure {round_}")

    def meanwhile(self, previous: RoundResult | None, measured: None, round_: int) -> None:
        assert all(len(machine.saved) == len(self.results) for machine in self.machines)  # sent, not waited for yet
        self.calls.append(f"meanwhile {round_}, after {previous.round if previous else None}")

    def screen(self, replies: list[Message], theta: Tensor, round_: int) -> Models:
        return Server.screen(self, replies, theta, round_)  # type: ignore[arg-type]

    def reports(self, replies: list[Message], round_: int) -> list[TrainStats]:
        return [reply.stats for reply in replies if reply.stats]

    def record(self, result: RoundResult | None) -> None:
        self.calls.append(f"record {result.round if result else None}")

    def waited(self, round_: int) -> float | None:
        return None

    def checkpoint(self, result: RoundResult) -> None:
        self.results.append(result)
        self.calls.append(f"checkpoint {result.round}")

    def take_notes(self) -> dict[str, Any]:
        return {"S": len(self.results)}


def run(server: FakeServer, first_round: int = 1, unrecorded: RoundResult | None = None) -> Tensor:
    return run_rounds(server, torch.zeros(SIZE), first_round, unrecorded)  # type: ignore[arg-type]


def test_a_round_averages_and_corrects() -> None:
    """Machines add 1 and 3, the server 0.5: each round adds 2.5."""
    server = FakeServer([Adds(1.0), Adds(3.0)])
    assert run(server).tolist() == [7.5] * SIZE
    assert [result.theta[0].item() for result in server.results] == [2.5, 5.0, 7.5]
    assert [result.round for result in server.results] == [1, 2, 3]
    lengths = {"update_lengths": [2.0, 6.0], "screened": []}  # of 4 numbers, 1 and 3 more each
    assert [result.notes for result in server.results] == [lengths | {"S": n} for n in range(3)]
    assert all(result.traffic.bytes_up == 2 * 4 * SIZE for result in server.results)
    assert [len(result.stats) for result in server.results] == [2, 2, 2]


def test_the_model_goes_out_before_the_last_round_is_recorded() -> None:
    server = FakeServer([Adds(1.0)], num_rounds=2)
    run(server)
    assert server.calls == [
        *("measure 1", "meanwhile 1, after None", "checkpoint 1"),
        *("measure 2", "meanwhile 2, after 1", "checkpoint 2", "record 2"),
    ]


def test_steps_beside_begin_with_the_model_that_was_sent_before_anything_is_evaluated() -> None:
    server = FakeServer([Adds(1.0), Adds(3.0)], num_rounds=2)

    def beside(theta: Tensor, round_: int) -> None:
        assert all(len(machine.saved) == len(server.results) for machine in server.machines)  # sent, not waited for yet
        server.calls.append(f"beside {round_} from {theta[0]}")

    server.corrector = beside
    run(server)
    assert server.calls == [
        *("measure 1", "beside 1 from 0.0", "meanwhile 1, after None", "checkpoint 1"),
        *("measure 2", "beside 2 from 2.5", "meanwhile 2, after 1", "checkpoint 2", "record 2"),
    ]


def test_a_resumed_run_begins_with_what_it_has_not_recorded() -> None:
    server = FakeServer([Adds(1.0)], num_rounds=5)
    run(server)
    unrecorded = server.results[2]
    again = FakeServer([Adds(1.0)], num_rounds=5)
    run(again, 4, unrecorded)
    assert again.calls[1] == "meanwhile 4, after 3"
    assert [result.round for result in again.results] == [4, 5]
    nothing_left = FakeServer([Adds(1.0)], num_rounds=3)
    run(nothing_left, 4, unrecorded)
    assert nothing_left.calls == ["record 3"]


def test_machines_hear_which_round_is_durable() -> None:
    machine = Adds(1.0)
    server = FakeServer([machine])
    server.durable_round = 17
    run(server)
    assert [request.durable_round for request in machine.requests] == [17, 17, 17]


class SendsNaN(Adds):
    def handle(self, request: Message) -> Message | None:
        reply = super().handle(request)
        assert reply is not None
        return replace(reply, content=torch.full((SIZE,), float("nan"))) if request.round == 2 else reply


def test_a_model_that_is_not_finite_ends_the_run_with_advice() -> None:
    with pytest.raises(
        TrainingError, match=r"rank 2 \(part 1\) sent parameters that are not finite in round 2 .*local_lr"
    ):
        run(FakeServer([Adds(1.0), SendsNaN(3.0)]))


def test_or_it_is_skipped() -> None:
    server = FakeServer([Adds(1.0), SendsNaN(3.0)], ["on_nonfinite=skip"])
    assert run(server).tolist() == [2.5 + 1.5 + 2.5] * SIZE
    assert [result.skipped_parts for result in server.results] == [[], [1], []]


def test_a_reply_that_does_not_come_is_not_taken_for_another() -> None:
    class Dies(Adds):
        def handle(self, request: Message) -> Message | None:
            raise PeerLostError("lost the connection to rank 2")

    server = FakeServer([Adds(1.0), Dies(1.0)])
    with pytest.raises(PeerLostError, match="rank 2"):
        run(server)
    assert server.results == []


def test_a_method_that_changes_the_model_it_sends() -> None:
    """send_model is the method's: here it sends twice what the server has."""

    class Doubles(Corrects):
        def send_model(self, theta: Tensor, round_: int, server: Any) -> None:
            server.channel.send(Train(round_, 2 * theta))

    server = FakeServer([Adds(1.0)], num_rounds=2)
    server.algorithm = Doubles(server.algorithm.config)
    assert run(server).tolist() == [2 * 1.5 + 1 + 0.5] * SIZE
