"""Machines and transports without a graph, a process or a network, for tests of the channel and the round loop."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from llcg_dist.comm.channel import ServerChannel
from llcg_dist.comm.deadline import Deadline
from llcg_dist.comm.envelope import Envelope, Packet
from llcg_dist.comm.error_feedback import machine_compressor, server_compressor
from llcg_dist.comm.ledger import Kind, Ledger
from llcg_dist.comm.loopback import LoopbackTransport
from llcg_dist.comm.machine_channel import MachineChannel
from llcg_dist.comm.members import Members
from llcg_dist.comm.messages import MESSAGES, NUM_STATS, Finish, Gradient, Measure, Message, Train, Trained, TrainStats

PARAMETERS = frozenset({Kind.PARAMETERS})


def stats(loss: float = 0.5, **changes: float) -> TrainStats:
    return replace(TrainStats(train_loss=loss, seconds_local=0.25, steps=3, peak_rss_mb=100.0), **changes)  # type: ignore[arg-type]


@dataclass
class Adds:
    """A machine that adds a number to the model it is sent, and tells the round as its loss."""

    number: float
    requests: list[Message] = field(default_factory=list)
    saved: list[int] = field(default_factory=list)

    def handle(self, request: Message) -> Message | None:
        self.requests.append(request)
        if isinstance(request, Finish):
            return None
        if isinstance(request, Measure):
            return Gradient(request.round, request.vector * self.number)
        assert isinstance(request, Train)
        return Trained(request.round, request.vector + self.number, stats=stats(float(request.round)))

    def after_reply(self) -> None:
        self.saved.append(self.requests[-1].round)


def machine_channels(
    machines: Sequence[Adds], size: int, dtype: str = "float32", types: Sequence[type[Message]] = MESSAGES
) -> list[MachineChannel]:
    nothing = torch.zeros(size, dtype=torch.bool)
    return [MachineChannel(m, machine_compressor(dtype, nothing), Ledger(PARAMETERS), types) for m in machines]


def loopback_channel(
    machines: Sequence[Adds],
    size: int,
    dtype: str = "float32",
    allowed: frozenset[Kind] = PARAMETERS,
    metered: bool = True,
) -> ServerChannel:
    transport = LoopbackTransport(machine_channels(machines, size, dtype))
    compressor = server_compressor(dtype, torch.zeros(size, dtype=torch.bool))
    return ServerChannel(transport, compressor, Ledger(allowed), MESSAGES, Members(len(machines)), metered)


class BytesTransport:
    """Moves packets as real processes do: through envelopes, as bytes; `tamper` may change a reply on its way."""

    parallel = True
    seal_bytes = 0
    deadline: Deadline | None = None

    def __init__(
        self,
        machines: Sequence[MachineChannel],
        content_bytes: int,
        tamper: Callable[[int, Packet], Packet] = lambda part, packet: packet,
    ) -> None:
        self._machines, self.num_machines, self._tamper = machines, len(machines), tamper
        self.rank_of_part = list(range(1, 1 + len(machines)))
        self._down = [Envelope(0, content_bytes, "cpu") for _ in machines]
        self._up = [Envelope(NUM_STATS, content_bytes, "cpu") for _ in machines]

    def send(self, packet: Packet, has_reply: bool, parts: Sequence[int]) -> None:
        for envelope in self._down:
            _transfer(packet, envelope)

    def receive(self) -> dict[int, Packet]:
        for part, (machine, down, up) in enumerate(zip(self._machines, self._down, self._up, strict=True)):
            reply = machine.answer(down.read())
            assert reply is not None
            _transfer(self._tamper(part, reply), up)
        return {part: envelope.read() for part, envelope in enumerate(self._up)}

    def take_losses(self) -> dict[int, str]:
        return {}

    def admit(self, round_: int) -> list[int]:
        return []

    def take_late(self, round_: int, wait: bool) -> dict[int, Packet]:
        return {}


def _transfer(packet: Packet, target: Envelope) -> None:
    source = Envelope((target._stats).numel(), target._content.numel(), "cpu")
    message: Tensor = source.write(packet)
    target.bytes[: len(message)] = message
