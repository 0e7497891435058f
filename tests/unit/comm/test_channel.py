"""Requests and replies over either transport: the same models, the same ledger; what does not belong is refused."""

from dataclasses import replace

import pytest
import torch

from llcg_dist.comm.channel import ServerChannel
from llcg_dist.comm.envelope import Packet, control_bytes
from llcg_dist.comm.error_feedback import server_compressor
from llcg_dist.comm.ledger import Kind, Ledger, Traffic
from llcg_dist.comm.loopback import LoopbackTransport
from llcg_dist.comm.members import Members
from llcg_dist.comm.messages import MESSAGES, NUM_STATS, Finish, Gradient, Measure, Message, Train, TrainStats
from llcg_dist.errors import ProtocolError
from tests.helpers.fake_machines import PARAMETERS, Adds, BytesTransport, loopback_channel, machine_channels, stats

SIZE = 5
CONTROL = control_bytes(0) + control_bytes(NUM_STATS)


def bytes_channel(machines: list[Adds], dtype: str = "float32", **tampering: object) -> ServerChannel:
    transport = BytesTransport(machine_channels(machines, SIZE, dtype), 4 * SIZE + 64, **tampering)  # type: ignore[arg-type]
    compressor = server_compressor(dtype, torch.zeros(SIZE, dtype=torch.bool))
    return ServerChannel(transport, compressor, Ledger(PARAMETERS), MESSAGES, Members(len(machines)))


def channels(machines: list[Adds], others: list[Adds], dtype: str = "float32") -> list[ServerChannel]:
    return [loopback_channel(machines, SIZE, dtype), bytes_channel(others, dtype)]


def test_updates_come_in_part_order_from_the_model_that_was_sent() -> None:
    for channel in channels([Adds(1.0), Adds(2.0), Adds(4.0)], [Adds(1.0), Adds(2.0), Adds(4.0)]):
        for round_, start in ((7, 0.0), (8, 10.0)):
            channel.send(Train(round_, torch.full((SIZE,), start), durable_round=round_ - 1))
            replies = channel.replies()
            assert [reply.vector.tolist() for reply in replies] == [[start + n] * SIZE for n in (1.0, 2.0, 4.0)]
            assert [reply.stats and reply.stats.train_loss for reply in replies] == [round_] * 3


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
def test_both_transports_have_the_same_bits_and_the_same_ledger(dtype: str) -> None:
    loopback, through_bytes = channels([Adds(0.1), Adds(0.7)], [Adds(0.1), Adds(0.7)], dtype)
    theta = torch.linspace(-1, 1, SIZE)
    for round_ in range(1, 5):
        answers = []
        for channel in (loopback, through_bytes):
            channel.send(Train(round_, theta))
            answers.append([reply.vector.clone() for reply in channel.replies()])
            channel.ledger.end_round()
        assert all(torch.equal(one, other) for one, other in zip(*answers, strict=True))
        theta = torch.stack(answers[0]).mean(dim=0)
    assert loopback.ledger.as_json() == through_bytes.ledger.as_json()


def test_bytes_of_a_round() -> None:
    """Three machines: five float32 each way; header down, header and stats up."""
    channel = loopback_channel([Adds(1.0), Adds(2.0), Adds(4.0)], SIZE)
    for round_ in (1, 2):
        channel.send(Train(round_, torch.zeros(SIZE)))
        channel.replies()
        assert channel.ledger.end_round() == Traffic(60, 60, 0, 0, 3 * CONTROL, 1)
    rows = [row for row in channel.ledger.as_json()["messages"] if row["kind"] == "parameters"]
    shapes = {(row["direction"], row["dtype"], row["elements"], row["count"], row["phase"]) for row in rows}
    assert shapes == {("down", "float32", 5, 6, "round"), ("up", "float32", 5, 6, "round")}


class Ask(Message): ...


class Told(Message):
    kind = Kind.PARAMETERS


def test_replies_of_several_lengths_are_counted_one_by_one() -> None:
    """With a method's own messages each machine may tell something of another length, or nothing."""

    class Tells(Adds):
        def handle(self, request: Message) -> Message | None:
            self.requests.append(request)
            return Told(request.round, torch.ones(int(self.number)))

    machines = machine_channels([Tells(0), Tells(3), Tells(1)], SIZE, types=(Ask, Told))
    for transport in (LoopbackTransport(machines), BytesTransport(machines, 4 * SIZE)):
        compressor = server_compressor("float32", torch.zeros(SIZE, dtype=torch.bool))
        channel = ServerChannel(transport, compressor, Ledger(PARAMETERS), (Ask, Told), Members(3))
        channel.send(Ask(1))
        channel.replies()
        assert channel.ledger.end_round() == Traffic(4 * (3 + 1), 0, 0, 0, 3 * CONTROL, 0)
        assert channel.ledger.since_start()[0] == 3 + 3  # a content is in one message with its header


@pytest.mark.parametrize("machines", [[Adds(1.0)], []], ids=["the server itself", "no machine"])
def test_where_nothing_crosses_nothing_is_counted(machines: list[Adds]) -> None:
    channel = loopback_channel(machines, SIZE, metered=False)
    channel.send(Train(1, torch.zeros(SIZE)))
    assert len(channel.replies()) == len(machines)
    assert channel.ledger.end_round() == Traffic(0, 0, 0, 0, 0, 0)
    assert channel.ledger.total_bytes() == 0


def test_a_model_that_was_just_sent_does_not_cross_again() -> None:
    machines = [Adds(1.0), Adds(2.0)]
    for channel in channels(machines, [Adds(1.0), Adds(2.0)], "int8"):
        theta = torch.linspace(0, 1, SIZE)
        channel.send(Measure(1, theta))
        measured = [reply.vector.clone() for reply in channel.replies()]
        held = channel.held.clone()
        channel.send(Train(1, theta))
        channel.replies()
        assert torch.equal(channel.held, held)  # compressed once
        assert torch.equal(measured[1], 2 * held)  # machines measure at what they hold
        traffic = channel.ledger.end_round()
        assert (traffic.gradient_bytes, traffic.exchanges) == (2 * 4 * SIZE, 1)
        rows = [row for row in channel.ledger.as_json()["messages"] if row["kind"] == "parameters"]
        assert sum(row["count"] for row in rows if row["direction"] == "down") == 2
    assert torch.equal(machines[0].requests[0].vector, machines[0].requests[1].vector)


def test_gradients_may_answer_a_measurement_and_nothing_else() -> None:
    class SendsGradients(Adds):
        def handle(self, request: Message) -> Message | None:
            self.requests.append(request)
            return Gradient(request.round, torch.ones(SIZE))

    for channel in (loopback_channel([SendsGradients(1.0)], SIZE), bytes_channel([SendsGradients(1.0)])):
        channel.send(Measure(1, torch.ones(SIZE)))
        assert channel.replies()[0].vector.tolist() == [1.0] * SIZE
        channel.send(Train(1, torch.zeros(SIZE)))
        with pytest.raises(ProtocolError, match="gradients must not cross"):
            channel.replies()


def test_a_kind_that_is_not_allowed_is_refused_before_it_is_sent() -> None:
    channel = loopback_channel([Adds(1.0)], SIZE, allowed=frozenset())
    with pytest.raises(ProtocolError, match="parameters must not cross"):
        channel.send(Train(1, torch.zeros(SIZE)))


def test_a_class_of_message_that_the_method_does_not_declare_is_refused() -> None:
    class Surprise(Message): ...

    with pytest.raises(ProtocolError, match="Surprise is not a message of this method"):
        loopback_channel([Adds(1.0)], SIZE).send(Surprise(1))


def test_a_reply_of_another_round_names_the_part() -> None:
    def late(part: int, packet: Packet) -> Packet:
        return replace(packet, round=packet.round - 1) if part == 1 else packet

    channel = bytes_channel([Adds(1.0), Adds(2.0)], tamper=late)
    channel.send(Train(4, torch.zeros(SIZE)))
    with pytest.raises(ProtocolError, match="replies to Train of round 4: part 1 is in round 3"):
        channel.replies()


def test_replies_of_different_classes_are_refused() -> None:
    def other(part: int, packet: Packet) -> Packet:
        return replace(packet, code=MESSAGES.index(Gradient)) if part == 0 else packet

    channel = bytes_channel([Adds(1.0), Adds(2.0)], tamper=other)
    channel.send(Train(4, torch.zeros(SIZE)))
    with pytest.raises(ProtocolError, match="Gradient, Trained"):
        channel.replies()


def test_an_unknown_class_is_refused() -> None:
    channel = bytes_channel([Adds(1.0)], tamper=lambda part, packet: replace(packet, code=99))
    channel.send(Train(4, torch.zeros(SIZE)))
    with pytest.raises(ProtocolError, match="unknown class 99"):
        channel.replies()


def test_machines_save_after_they_have_replied_and_finish_has_no_reply() -> None:
    machine = Adds(1.0)
    channel = loopback_channel([machine], SIZE)
    channel.send(Train(3, torch.zeros(SIZE)))
    assert machine.saved == []
    channel.replies()
    assert machine.saved == [3]
    channel.send(Finish(3))
    assert machine_channels([machine], SIZE)[0].answer(Packet(MESSAGES.index(Finish), 3, 0, None, None)) is None


def test_features_that_machines_fetched_are_counted() -> None:
    class Fetches(Adds):
        def handle(self, request: Message) -> Message | None:
            reply = super().handle(request)
            assert reply is not None
            fetched = stats(feature_pairs=2, feature_id_bytes=40, feature_row_bytes=600)
            return replace(reply, stats=fetched)

    channel = loopback_channel([Fetches(1.0), Adds(1.0)], SIZE, allowed=PARAMETERS | {Kind.FEATURES})
    channel.send(Train(1, torch.zeros(SIZE)))
    channel.replies()
    traffic = channel.ledger.end_round()
    assert (traffic.feature_id_bytes, traffic.feature_row_bytes, traffic.feature_bytes) == (40, 600, 640)


def test_stats_survive_their_packing() -> None:
    told = TrainStats(train_loss=0.1, seconds_local=12.5, steps=2**40, peak_rss_mb=386.25)
    packed = told.pack()
    assert packed.dtype == torch.float64
    assert len(packed) == NUM_STATS
    assert TrainStats.unpack(packed) == told
    assert isinstance(TrainStats.unpack(packed).steps, int)
