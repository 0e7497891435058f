"""Messages <-> packets, and how both are counted."""

from collections import Counter
from collections.abc import Sequence

import torch
from torch import Tensor

from llcg_dist.comm.envelope import Packet, control_bytes
from llcg_dist.comm.ledger import CountedMessage, Direction, Kind, Ledger
from llcg_dist.comm.messages import NUM_STATS, Message, TrainStats
from llcg_dist.errors import ProtocolError


class MessageCodes:
    """Messages <-> packets, for the classes of message that a job may use: the same list at every rank."""

    def __init__(self, types: Sequence[type[Message]]) -> None:
        self._types = list(types)

    def pack(self, message: Message, content: Tensor | None) -> Packet:
        if type(message) not in self._types:
            raise ProtocolError(f"{type(message).__name__} is not a message of this method")
        stats = message.stats.pack() if message.stats else None
        code = self._types.index(type(message))
        return Packet(code, message.round, message.durable_round, stats, content, message.kind, message.phase)

    def type_of(self, packet: Packet) -> type[Message]:
        if not 0 <= packet.code < len(self._types):
            raise ProtocolError(f"a message of the unknown class {packet.code}")
        return self._types[packet.code]

    def content(self, packet: Packet, model_dtype: torch.dtype) -> Tensor:
        """The bytes that arrived, as what they are; an empty vector where there are none."""
        dtype = model_dtype if self.type_of(packet).is_model else torch.float32
        return torch.empty(0, dtype=dtype) if packet.content is None else packet.content.view(dtype)

    def unpack(self, packet: Packet, content: Tensor | None, part: int | None = None) -> Message:
        kind = self.type_of(packet)
        stats = TrainStats.unpack(packet.stats) if kind.ends_round and packet.stats is not None else None
        return kind(packet.round, content, packet.durable_round, stats, part)


def count_messages(
    ledger: Ledger, message: Message | type[Message], contents: Sequence[Tensor | None], direction: Direction
) -> None:
    """Enters a message to or from every machine that has one: the contents, and the headers as control."""
    if not contents:
        return
    filled = [content for content in contents if content is not None and content.numel() > 0]
    if filled:
        shapes = (CountedMessage.of(content, message.kind, direction, message.phase) for content in filled)
        ledger.count_each(Counter(shapes))
    num_stats = NUM_STATS if direction is Direction.UP else 0
    control = torch.empty(control_bytes(num_stats) // 8, dtype=torch.int64)
    counted = CountedMessage.of(control, Kind.CONTROL, direction, message.phase)
    ledger.count(counted, len(contents), enclosed=len(filled))
