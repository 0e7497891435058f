"""A machine's end of the channel (comm/channel.py): it answers requests, whichever transport brings them."""

from collections.abc import Sequence
from typing import Protocol

from torch import Tensor

from llcg_dist.comm.envelope import Packet
from llcg_dist.comm.error_feedback import MachineCompressor
from llcg_dist.comm.ledger import Direction, Ledger
from llcg_dist.comm.message_codes import MessageCodes, count_messages
from llcg_dist.comm.messages import Message


class Handler(Protocol):
    """A machine, as the channel sees it."""

    def handle(self, request: Message) -> Message | None:
        """The reply to a request; None where none is due."""

    def after_reply(self) -> None:
        """The reply is on its way: time for what nobody waits for."""


class MachineChannel:
    """Decodes a request, has it handled, and encodes the reply."""

    def __init__(
        self, machine: Handler, compressor: MachineCompressor, ledger: Ledger, types: Sequence[type[Message]]
    ) -> None:
        self._machine, self._compressor, self._ledger = machine, compressor, ledger
        self._codes = MessageCodes(types)
        self._model: Tensor | None = None

    def answer(self, packet: Packet) -> Packet | None:
        """None: there is nothing to answer, the run is over."""
        content = self._codes.content(packet, self._compressor.codec.dtype)
        count_messages(self._ledger, self._codes.type_of(packet), [content], Direction.DOWN)
        request = self._decoded(packet, content)
        reply = self._machine.handle(request)
        if reply is None:
            return None
        sent = self._compressor.compress(reply.vector) if reply.is_model else reply.content
        with self._ledger.also_allowing(request.reply_may_be):
            count_messages(self._ledger, reply, [sent], Direction.UP)
        if reply.stats:
            self._ledger.end_round()
        return self._codes.pack(reply, sent)

    def after_reply(self) -> None:
        self._machine.after_reply()

    def _decoded(self, packet: Packet, content: Tensor) -> Message:
        """A request for a model without one is for the model that was received last."""
        if not self._codes.type_of(packet).is_model:
            return self._codes.unpack(packet, content if content.numel() else None)
        if content.numel():
            self._model = self._compressor.decompress(content)
        return self._codes.unpack(packet, self._model)
