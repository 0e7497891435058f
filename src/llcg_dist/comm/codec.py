"""Encoding of a float32 vector for the network: as it is, or quantised to bfloat16 or int8.

Learned parameters may lose precision, because error feedback makes up for it later (error_feedback.py). BatchNorm's
running statistics are values, not differences, and a variance must not become negative: they cross as bfloat16, which
keeps the sign.

All rounding is to the nearest (ties to even), and every operation is elementwise and correctly rounded: the same bits
on any host. What is not finite stays so: a NaN or an infinity must reach the check before averaging.

A vector is encoded piece by piece: what fits a processor's cache takes a fraction of the time of entire vectors,
whose intermediate results would each take fresh memory.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

BLOCK = 1024
"""Values that share a quantisation scale."""
_PIECE = 128 * BLOCK
_STEPS = 127
_SMALLEST = torch.finfo(torch.float32).tiny
"""Below it float32 loses precision, and ranks flush to 0."""


@dataclass(frozen=True)
class Piece:
    """A contiguous part of the vector that is encoded at once."""

    span: slice
    """Its place in the vector."""
    statistics: Tensor
    """Positions of running statistics, relative to the start of the span."""
    among: slice
    """The place of these statistics among all statistics of the vector."""

    @property
    def blocks(self) -> slice:
        return slice(self.span.start // BLOCK, -(-self.span.stop // BLOCK))


class Codec:
    """float32: the vector itself."""

    dtype = torch.float32

    def __init__(self, statistics: Tensor) -> None:
        """`statistics` [n] of bool over the vector: True where it holds running statistics."""
        self.size = len(statistics)
        self.statistics = statistics.nonzero().flatten()
        self.pieces = [self._piece(start, min(start + _PIECE, self.size)) for start in range(0, self.size, _PIECE)]

    def _piece(self, start: int, stop: int) -> Piece:
        first, end = torch.searchsorted(self.statistics, torch.tensor([start, stop])).tolist()
        return Piece(slice(start, stop), self.statistics[first:end] - start, slice(first, end))

    @property
    def elements(self) -> int:
        """Length of an encoded message, in elements of `dtype`."""
        return self.size

    def empty_message(self) -> Tensor:
        """A buffer for an encoded message."""
        return torch.zeros(self.elements, dtype=self.dtype)

    def quantize(self, piece: Piece, values: Tensor, message: Tensor) -> None:
        """Writes the values of a piece into the message."""
        message[piece.span] = values

    def dequantize(self, piece: Piece, message: Tensor) -> Tensor:
        """The values of a piece, as the message has them: float32, rounded."""
        return message[piece.span].float()


class BFloat16(Codec):
    """Eight bits of precision, relative to each value."""

    dtype = torch.bfloat16


class Int8(Codec):
    """Multiples of a scale that BLOCK values share, the largest of them over 127. One message of bytes:

    scales, float32 | statistics, bfloat16 | all values, int8 (0 in the place of statistics)
    """

    dtype = torch.int8

    @property
    def _lengths(self) -> list[int]:
        return [4 * -(-self.size // BLOCK), 2 * len(self.statistics), self.size]

    @property
    def elements(self) -> int:
        return sum(self._lengths)

    def quantize(self, piece: Piece, values: Tensor, message: Tensor) -> None:
        all_scales, statistics, numbers = self._parts(message)
        statistics[piece.among] = values[piece.statistics]
        rows = _in_blocks(values)
        rows.view(-1)[piece.statistics] = 0
        scales = torch.maximum(rows.amax(dim=1), -rows.amin(dim=1)) / _STEPS
        scales[scales < _SMALLEST] = 0
        scales[scales.isinf()] = torch.nan
        steps = rows.div_(torch.where(scales > 0, scales, torch.inf).unsqueeze(1)).round_().clamp_(-_STEPS, _STEPS)
        if not bool(scales.isfinite().all()):
            steps.nan_to_num_(nan=0)  # the scale says it for the block
        all_scales[piece.blocks] = scales
        numbers[piece.span] = steps.view(-1)[: len(values)]

    def dequantize(self, piece: Piece, message: Tensor) -> Tensor:
        scales, statistics, numbers = self._parts(message)
        rows = _in_blocks(numbers[piece.span].float()).mul_(scales[piece.blocks].unsqueeze(1))
        values = rows.view(-1)[: piece.span.stop - piece.span.start]
        values[piece.statistics] = statistics[piece.among].float()
        return values

    def _parts(self, message: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        scales, statistics, numbers = message.split(self._lengths)
        return scales.view(torch.float32), statistics.view(torch.bfloat16), numbers


def _in_blocks(values: Tensor) -> Tensor:
    """A copy, filled up with zeros: [blocks, BLOCK]."""
    return functional.pad(values, (0, -len(values) % BLOCK)).view(-1, BLOCK)


CODECS: dict[str, Callable[[Tensor], Codec]] = {"float32": Codec, "bfloat16": BFloat16, "int8": Int8}
"""By algorithm.exchange_dtype."""
