"""The server's end of its channel to the machines: requests and replies, compressed, counted, and checked.

A transport moves packets: `process_transport.py` between real processes, `loopback.py` within one. Compression with its
error feedback and the ledger are here, once for both, so a run has the same bits and the same byte counts on either.
Above the channel a model is always a model.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from llcg_dist.comm.deadline import Deadline
from llcg_dist.comm.envelope import Packet
from llcg_dist.comm.error_feedback import ServerCompressor
from llcg_dist.comm.ledger import Direction, Ledger
from llcg_dist.comm.members import Members
from llcg_dist.comm.message_codes import MessageCodes, count_messages
from llcg_dist.comm.messages import Message
from llcg_dist.comm.remote_rows import count_features
from llcg_dist.comm.report_checks import machine_names, require_reports, require_sizes
from llcg_dist.errors import ProtocolError
from llcg_dist.stopwatch import now


class ServerTransport(Protocol):
    """Moves packets between the server and all machines."""

    num_machines: int
    rank_of_part: list[int]
    parallel: bool
    """Machines work at the same time, not in turns."""
    seal_bytes: int
    """What sealing adds to a message, which the transport counts between server and machines; 0 without."""
    deadline: Deadline | None
    """When machines are late; None: they are waited for."""

    def send(self, packet: Packet, has_reply: bool, parts: Sequence[int]) -> None:
        """To the machines of these parts; returns before they have answered."""

    def receive(self) -> dict[int, Packet]:
        """Waits for one packet from each of them, by part, in order; those of machines that are lost or late are
        missing."""

    def take_late(self, round_: int, wait: bool) -> dict[int, Packet]:
        """The round begins: packets of machines that were late, by part, in memory of their own; `wait`: for one of
        them at least, if there are any."""

    def take_losses(self) -> dict[int, str]:
        """Parts whose machines are lost since the last call, and why; empty where a loss ends the job."""

    def admit(self, round_: int) -> list[int]:
        """The round begins: parts whose machines are back, and begin with nothing of their own."""


Substitute = Callable[[int, Message, int], Message]
"""(part, request, parts without a machine) -> the reply of a machine of this part, computed at the server."""


@dataclass(frozen=True)
class LateAnswer:
    """The model of a machine that a round has ended without."""

    part: int
    round: int
    """Of the request."""
    start: Tensor
    """The model that the machine started from, as the server has it."""
    model: Tensor


class ServerChannel:
    """The server's end: `send` a request, then wait for the `replies`."""

    def __init__(
        self,
        transport: ServerTransport,
        compressor: ServerCompressor,
        ledger: Ledger,
        types: Sequence[type[Message]],
        members: Members,
        metered: bool = True,
    ) -> None:
        """`types`: Algorithm.messages. `metered=False`: the only machine is the server itself, nothing crosses."""
        self._transport, self._compressor, self.ledger = transport, compressor, ledger
        self._codes, self.members, self._metered = MessageCodes(types), members, metered
        self.names = machine_names(transport.rank_of_part) if metered else ["rank 0"]
        """Of the machines, in part order, for messages."""
        self._sent: Tensor | None = None
        self._request: Message | None = None
        self._stood_in: dict[int, Message] = {}
        self._asked: Sequence[int] = ()
        self._starts: dict[int, Tensor] = {}
        """What machines that are late have started from, by part."""
        self.substitute: Substitute | None = None
        """Answers in the place of machines that are gone, if anybody does."""
        self.parallel = transport.parallel

    @property
    def held(self) -> Tensor:
        """The model as the machines have it, after compression."""
        return self._compressor.held

    def shared_state(self) -> list[Tensor]:
        """What the compressors of all machines must hold before the next model."""
        return self._compressor.shared_state()

    def admit(self, round_: int) -> list[int]:
        """At the beginning of a round: parts whose machines are back. They lack what all machines share; when they
        have it, they are members again."""
        back = self._transport.admit(round_)
        self.members.lose(self._transport.take_losses())
        return back

    def take_late(self, round_: int) -> list[LateAnswer]:
        """At the beginning of a round, after `admit`: what machines that were late have answered since. They can be
        asked again, and lack what all machines share."""
        packets = self._transport.take_late(round_, wait=not self.members.free)
        self.members.lose(self._transport.take_losses())
        answers = [self._late_answer(part, packet) for part, packet in packets.items()]
        self.members.catch_up(packets)
        return answers

    def _late_answer(self, part: int, packet: Packet) -> LateAnswer:
        reply, name, codec = self._codes.type_of(packet), self.names[part], self._compressor.codec
        if packet.round != self.members.late[part] or not (reply.is_model and reply.ends_round):
            raise ProtocolError(f"{name} answered round {self.members.late[part]} with {reply.__name__}")
        require_sizes([packet], reply, codec, [name])
        require_reports([packet], packet.round, [name])
        content, start = self._codes.content(packet, codec.dtype), self._starts.pop(part)
        self._count(reply, [content], Direction.UP)
        (model,) = self._compressor.decompress(start, [content])
        return LateAnswer(part, packet.round, start, model.clone())

    def finish(self, request: Message) -> None:
        """A request without a reply, to all machines; those that are late are waited for."""
        while self.members.late:
            packets = self._transport.take_late(request.round + 1, wait=True)
            self.members.lose(self._transport.take_losses())
            self.members.catch_up(packets)
        self.send(request)

    def send(self, request: Message, parts: Sequence[int] | None = None) -> None:
        """To the machines of these parts, or to all that are free; returns before they have answered. The model that
        was sent last does not cross again."""
        to, content = self.members.free if parts is None else parts, request.content
        if request.is_model:
            content = None if request.vector is self._sent else self._compressor.compress(request.vector)
            self._sent = request.vector
        packet = self._codes.pack(request, content)
        self._count(request, [content] * len(to), Direction.DOWN)
        self._request, self._stood_in, self._asked = request, {}, to
        self._transport.send(packet, request.has_reply, to)

    def stand_in(self) -> None:
        """Answers the last request in the place of the machines that were gone, or late, before it was sent."""
        request, missing, started = self._request, self.members.missing, now()
        if self.substitute is not None and request is not None and missing:
            self._stood_in = {part: self.substitute(part, request, len(missing)) for part in missing}
            self.members.note_stand_in(missing, now() - started)

    def replies(self) -> list[Message]:
        """One from every machine to the last request, and those of `stand_in`, in part order; vectors are valid until
        the next request. Machines that are lost or late meanwhile are missing."""
        assert self._request is not None
        packets = self._transport.receive()
        self.members.lose(self._transport.take_losses())
        late = [part for part in self._asked if part in self.members.present and part not in packets]
        self.members.fall_behind(late, self._request.round)
        self._starts |= {part: self._sent for part in late if self._sent is not None}
        replies = self._opened(packets, self._request) if packets else {}
        return [reply for _, reply in sorted({**replies, **self._stood_in}.items())]

    def _opened(self, packets: Mapping[int, Packet], request: Message) -> dict[int, Message]:
        """The answers in these packets, counted and checked."""
        kind, arrived = self._kind_of_answers(packets, request), list(packets.values())
        names = [self.names[part] for part in packets]
        require_sizes(arrived, kind, self._compressor.codec, names)
        contents = [self._codes.content(packet, self._compressor.codec.dtype) for packet in arrived]
        with self.ledger.also_allowing(request.reply_may_be):
            self._count(kind, contents, Direction.UP)
        if kind.is_model:
            assert self._sent is not None
            contents = list(self._compressor.decompress(self._sent, contents))
        if kind.ends_round:
            require_reports(arrived, request.round, names)
        of_part = dict(zip(packets, contents, strict=True))
        replies = {part: self._codes.unpack(packets[part], content, part) for part, content in of_part.items()}
        for stats in (reply.stats for reply in replies.values() if reply.stats):
            count_features(stats, self.ledger, self._transport.seal_bytes)
        return replies

    def _kind_of_answers(self, packets: Mapping[int, Packet], request: Message) -> type[Message]:
        """Raises ProtocolError where these are not answers of one class to the request."""
        kinds = {self._codes.type_of(packet) for packet in packets.values()}
        wrong_round = [part for part, packet in packets.items() if packet.round != request.round]
        if len(kinds) > 1 or wrong_round:
            names = ", ".join(sorted(kind.__name__ for kind in kinds))
            place = f"part {wrong_round[0]} is in round {packets[wrong_round[0]].round}" if wrong_round else names
            raise ProtocolError(f"replies to {type(request).__name__} of round {request.round}: {place}")
        return kinds.pop()

    def _count(self, message: Message | type[Message], contents: Sequence[Tensor | None], way: Direction) -> None:
        count_messages(self.ledger, message, contents if self._metered else (), way)
