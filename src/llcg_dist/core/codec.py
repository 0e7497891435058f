"""How a vector of float32 is written for the network: as it is, or rounded to fewer bytes.

Learned parameters may lose digits, because the ends make up for them later (exchange.py). BatchNorm's running
statistics are values, not differences, and a variance must not become negative: they cross as bfloat16, which keeps
the sign.

All rounding is to the nearest (ties to even), and every operation is elementwise and correctly rounded: the same bits
on any host. What is not finite stays so: a NaN or an infinity must reach the check before averaging.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

BLOCK = 1024
"""Values that share a scale."""
_STEPS = 127
_SMALLEST = torch.finfo(torch.float32).tiny
"""Below it float32 loses precision, and ranks flush to 0."""


class Codec:
    """float32: the vector itself."""

    dtype = torch.float32

    def __init__(self, statistics: Tensor) -> None:
        """`statistics` [n] of bool over the vector: True where it holds running statistics."""
        self.size = len(statistics)
        self.statistics = statistics.nonzero().flatten()

    @property
    def elements(self) -> int:
        """Of the message, in its own dtype."""
        return self.size

    def encode(self, vector: Tensor) -> Tensor:
        return vector

    def decode(self, message: Tensor) -> Tensor:
        return message


class BFloat16(Codec):
    """Eight bits of precision, relative to each value."""

    dtype = torch.bfloat16

    def encode(self, vector: Tensor) -> Tensor:
        return vector.bfloat16()

    def decode(self, message: Tensor) -> Tensor:
        return message.float()


class Int8(Codec):
    """Multiples of a scale that BLOCK values share, the largest of them over 127. One message of bytes:

    scales, float32 | statistics, bfloat16 | all values, int8 (0 in the place of statistics)
    """

    dtype = torch.int8

    def __init__(self, statistics: Tensor) -> None:
        super().__init__(statistics)
        self._blocks = -(-self.size // BLOCK)
        self._lengths = [4 * self._blocks, 2 * len(self.statistics), self.size]

    @property
    def elements(self) -> int:
        return sum(self._lengths)

    def encode(self, vector: Tensor) -> Tensor:
        rows = functional.pad(vector, (0, self._blocks * BLOCK - self.size))
        rows[self.statistics] = 0
        rows = rows.view(self._blocks, BLOCK)
        scales = torch.linalg.vector_norm(rows, torch.inf, dim=1) / _STEPS
        scales[scales < _SMALLEST] = 0
        scales[scales.isinf()] = torch.nan
        steps = rows.div_(torch.where(scales > 0, scales, torch.inf).unsqueeze(1)).round_().clamp_(-_STEPS, _STEPS)
        if not bool(scales.isfinite().all()):
            steps.nan_to_num_(nan=0)  # the scale says it for the block
        numbers = steps.to(torch.int8).flatten()[: self.size]
        statistics = vector[self.statistics].bfloat16()
        return torch.cat([scales.view(torch.int8), statistics.view(torch.int8), numbers])

    def decode(self, message: Tensor) -> Tensor:
        scales, statistics, numbers = message.split(self._lengths)
        rows = functional.pad(numbers, (0, self._blocks * BLOCK - self.size)).view(self._blocks, BLOCK)
        vector = (rows * scales.view(torch.float32).unsqueeze(1)).flatten()[: self.size]
        vector[self.statistics] = statistics.view(torch.bfloat16).float()
        return vector


CODECS: dict[str, Callable[[Tensor], Codec]] = {"float32": Codec, "bfloat16": BFloat16, "int8": Int8}
"""By algorithm.exchange_dtype."""
