"""A message as it crosses: header, stats and content in one buffer, since a small message of its own costs more time
than its bytes.

    int64   code of the message's class | round | durable round | bytes of content
    float64 stats (machine to server)
    bytes   content
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from llcg_dist.comm.frame import FrameBuffer, Label, SealError
from llcg_dist.comm.ledger import Kind, Phase

_HEADER = 4


def control_bytes(num_stats: int) -> int:
    """Header and stats, in a direction in which stats take `num_stats` numbers."""
    return 8 * (_HEADER + num_stats)


@dataclass(frozen=True)
class Packet:
    """An encoded message. `code` is the place of its class among those of the job."""

    code: int
    round: int
    durable_round: int
    stats: Tensor | None
    content: Tensor | None
    kind: Kind = Kind.CONTROL
    """Of the content, and the phase: for whom it is sent through. They do not cross in here."""
    phase: Phase = Phase.ROUND

    def copied(self) -> "Packet":
        """With content in memory of its own."""
        return self if self.content is None else replace(self, content=self.content.clone())


class Envelope:
    """A buffer that any packet of one direction fits into. Gloo accepts a message shorter than the buffer it is
    received into, so a receiver need not know what comes next.

    Made once and used in every round: memory that is new to a process costs as much time as filling it.
    """

    def __init__(self, num_stats: int, content_bytes: int) -> None:
        self._head = control_bytes(num_stats)
        self.frame = FrameBuffer(self._head + content_bytes, self._head, _following)
        self.bytes = self.frame.body
        self._header = self.bytes[: 8 * _HEADER].view(torch.int64)
        self._stats = self.bytes[8 * _HEADER : self._head].view(torch.float64)
        self._content = self.bytes[self._head :]

    def write(self, packet: Packet) -> Tensor:
        """Puts the packet into the buffer; returns the bytes to send."""
        content = packet.content
        size = 0 if content is None else content.nbytes
        self._header.copy_(torch.tensor([packet.code, packet.round, packet.durable_round, size]))
        self._stats.copy_(packet.stats) if packet.stats is not None else self._stats.zero_()
        if content is not None:
            self._content[:size].view(content.dtype).copy_(content)
        return self.bytes[: self._head + size]

    def label(self, packet: Packet) -> Label:
        """Of the packet in this buffer."""
        return Label(packet.kind, packet.round, packet.phase, self._head)

    def read(self) -> Packet:
        """The packet that arrived; its content lies in the buffer, to be used before the next arrives."""
        code, round_, durable_round, size = self._header.tolist()
        self._require_as_labelled(round_, size)
        stats = self._stats if len(self._stats) else None
        return Packet(code, round_, durable_round, stats, self._content[:size] if size else None)

    def _require_as_labelled(self, round_: int, size: int) -> None:
        """A sealed packet must say of itself what its frame says; otherwise a sender that has the key is wrong."""
        header = self.frame.header
        if header and (header.label.round, header.length) != (round_, self._head + size):
            frame = f"round {header.label.round}, {header.length} bytes"
            raise SealError(f"a message of round {round_} with {size} bytes of content came in the frame of {frame}")

    @property
    def received_bytes(self) -> int:
        """Length of the packet that arrived."""
        return self._head + _following(self.bytes)


def _following(body: Tensor) -> int:
    """Bytes of content, of which the header in a buffer tells. No method: an envelope that knew itself would stay in
    memory, as large as a model, until Python looks for garbage."""
    return int(body[8 * (_HEADER - 1) : 8 * _HEADER].view(torch.int64))
