"""The frame of a sealed message: a header that says which message this is, the sealed content, and the seal.

    magic (4) | version | kind | direction | cipher | job (16) | sender | receiver | part | incarnation (4 each)
    round | number | length (8 each)                                    64 bytes, in the clear, covered by the seal
    content (length), encrypted
    seal (16)

Numbers are big-endian. `number` counts the messages of a sender on a link, from 0; `part` is that of the machine at one
end of the link, or -1: while the parts are not given out yet, and between machines. Without sealing a message crosses
as it is, without a frame.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from llcg_dist.comm.ledger import Direction, Kind, Phase
from llcg_dist.errors import TrainingError

MAGIC, VERSION = b"LLCG", 1
_LAYOUT = struct.Struct(">4sBBBB16sIIiIqQQ")
HEADER_BYTES, TAG_BYTES = _LAYOUT.size, 16
SEAL_BYTES = HEADER_BYTES + TAG_BYTES
"""What a frame adds to a message."""
UNKNOWN_PART = -1
_KINDS, _DIRECTIONS = list(Kind), list(Direction)


class SealError(TrainingError):
    """A message that is not the one that was due: forged, changed, cut short, replayed, or from elsewhere."""


@dataclass(frozen=True)
class Label:
    """What a message is about."""

    kind: Kind
    round: int = 0
    phase: Phase = Phase.ROUND
    """For the ledger alone: it does not cross."""
    head: int = 0
    """So many bytes at the beginning say what follows them, which may take another way; 0: it crosses as one."""


@dataclass(frozen=True)
class Route:
    """From where to where a message goes: everything about it that its link settles."""

    job: bytes
    """16 bytes, new at every start of a job."""
    sender: int
    receiver: int
    incarnation: int
    cipher: int

    @property
    def direction(self) -> Direction:
        if self.sender and self.receiver:
            return Direction.BETWEEN
        return Direction.UP if self.sender else Direction.DOWN


@dataclass(frozen=True)
class Header:
    route: Route
    label: Label
    part: int
    number: int
    length: int

    def pack(self) -> bytes:
        route, label = self.route, self.label
        codes = (_KINDS.index(label.kind), _DIRECTIONS.index(route.direction), route.cipher)
        ends = (route.sender, route.receiver, self.part, route.incarnation)
        return _LAYOUT.pack(MAGIC, VERSION, *codes, route.job, *ends, label.round, self.number, self.length)

    @staticmethod
    def unpack(packed: bytes) -> "Header | None":
        """What a header says; None where it is none of this version."""
        magic, version, kind, direction, cipher, job, sender, receiver, part, incarnation, round_, number, length = (
            _LAYOUT.unpack(packed)
        )
        if (magic, version) != (MAGIC, VERSION) or kind >= len(_KINDS):
            return None
        route = Route(job, sender, receiver, incarnation, cipher)
        if direction != _DIRECTIONS.index(route.direction):
            return None
        return Header(route, Label(_KINDS[kind], round_), part, number, length)


class FrameBuffer:
    """Memory that a message of at most `capacity` bytes arrives in, with room for a frame around it.

    After it has arrived `body` holds it, from its first byte on, whether it was sealed or not.
    """

    def __init__(self, capacity: int, head: int = 0, following: Callable[[Tensor], int] = lambda body: 0) -> None:
        """`head`: bytes at the beginning of a message, of which `following` then reads how many come after them."""
        self.whole = torch.zeros(SEAL_BYTES + capacity, dtype=torch.uint8)
        self.head, self.following = head, following
        self.body: Tensor = self.whole[HEADER_BYTES : HEADER_BYTES + capacity]
        self.header: Header | None = None
        """Of the message that arrived, where it was sealed."""
