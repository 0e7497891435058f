"""What machines reply is checked before it is used, and who sent something else is named."""

from dataclasses import fields, replace

import pytest
import torch

from llcg_dist.comm.channel import ServerChannel
from llcg_dist.comm.envelope import Packet
from llcg_dist.comm.error_feedback import server_compressor
from llcg_dist.comm.ledger import Ledger
from llcg_dist.comm.members import Members
from llcg_dist.comm.messages import MESSAGES, Measure, Train, TrainStats
from llcg_dist.errors import TrainingError
from tests.helpers.fake_machines import PARAMETERS, Adds, BytesTransport, machine_channels

SIZE = 40
NAMES = [field.name for field in fields(TrainStats)]


def channel(dtype: str = "float32", **tampering: object) -> ServerChannel:
    machines = [Adds(1.0), Adds(2.0)]
    transport = BytesTransport(machine_channels(machines, SIZE, dtype), 4 * SIZE + 64, **tampering)  # type: ignore[arg-type]
    compressor = server_compressor(dtype, torch.zeros(SIZE, dtype=torch.bool))
    return ServerChannel(transport, compressor, Ledger(PARAMETERS), MESSAGES, Members(len(machines)))


def reporting(name: str, value: float) -> ServerChannel:
    """Part 1 reports this number in round 4."""

    def lie(part: int, packet: Packet) -> Packet:
        if part == 0 or packet.stats is None:
            return packet
        stats = packet.stats.clone()
        stats[NAMES.index(name)] = value
        return replace(packet, stats=stats)

    found = channel(tamper=lie)
    found.send(Train(4, torch.zeros(SIZE)))
    return found


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"train_loss"}))
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0, 1e300])
def test_a_number_that_cannot_be_names_the_part(name: str, value: float) -> None:
    with pytest.raises(TrainingError, match=rf"^rank 2 \(part 1\) reported {name}=.* in round 4, which is ") as ended:
        reporting(name, value).replies()
    assert "\n" not in str(ended.value)


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("steps", 2.5, "is not whole"),
        ("checkpoint_failed", 2, "is more than 1"),
        ("checkpoint_round", 5, "is more than 4"),
        ("train_loss", -0.5, "is negative"),
    ],
)
def test_rules_of_one_number(name: str, value: float, rule: str) -> None:
    with pytest.raises(TrainingError, match=rf"part 1\) reported {name}={value:g} in round 4, which {rule}"):
        reporting(name, value).replies()


@pytest.mark.parametrize("loss", [float("nan"), float("inf"), 0.0, 1e30])
def test_a_loss_may_have_diverged(loss: float) -> None:
    assert reporting("train_loss", loss).replies()[1].stats is not None


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
@pytest.mark.parametrize("size", [0, 1, 10, 39])
def test_bytes_in_the_place_of_a_model_are_refused(dtype: str, size: int) -> None:
    def short(part: int, packet: Packet) -> Packet:
        assert packet.content is not None
        sent = packet.content.view(torch.uint8)[:size] if size else None
        return replace(packet, content=sent) if part == 1 and packet.round == 2 else packet

    found = channel(dtype, tamper=short)
    found.send(Train(1, torch.zeros(SIZE)))
    found.replies()
    found.send(Train(2, torch.ones(SIZE)))
    with pytest.raises(TrainingError, match=rf"rank 2 \(part 1\) sent {size} bytes in round 2, where Trained has \d+"):
        found.replies()


def test_a_gradient_has_its_length() -> None:
    def short(part: int, packet: Packet) -> Packet:
        assert packet.content is not None
        return replace(packet, content=packet.content[:3]) if part == 0 else packet

    found = channel(tamper=short)
    found.send(Measure(1, torch.ones(SIZE)))
    with pytest.raises(TrainingError, match=r"rank 1 \(part 0\) sent 12 bytes in round 1, where Gradient has 160"):
        found.replies()
