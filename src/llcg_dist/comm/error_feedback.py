"""Compression of models with error feedback: what quantisation (codec.py) leaves out of one message is in a later one.

    server -> machines    the new model less what the machines hold; they hold nothing before the first
    machine -> server     its model less the one it received, plus the quantisation error of the round before (residual)

The server knows to the bit what the machines hold, so the error of one message is in the next difference. It adds a
machine's difference to its own exact model: precision that has not reached the machines yet is not lost there.
With float32 nothing is rounded and no state outlives a round: models cross as they are.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from llcg_dist.comm.codec import CODECS, Codec, Piece
from llcg_dist.config.algorithm import ExchangeDtype
from llcg_dist.training.flat_vector import is_finite


class ServerCompressor:
    """The server's side for float32, which sends models as they are; the subclass quantises."""

    def __init__(self, codec: Codec) -> None:
        self.codec = codec
        self.held = torch.zeros(codec.size)
        """The model as the machines have it."""

    def compress(self, theta: Tensor) -> Tensor:
        """The message to every machine."""
        self.held = theta
        return theta

    def decompress(self, theta: Tensor, messages: Sequence[Tensor]) -> Sequence[Tensor]:
        """The machines' models, to be used before the next are received; `theta` is what the server sent them."""
        return messages

    def state(self) -> dict[str, Tensor]:
        """Error feedback that the next round needs, for a checkpoint."""
        return {}

    def load_state(self, state: dict[str, Tensor]) -> None: ...

    def shared_state(self) -> list[Tensor]:
        """What every machine must hold before the next message, for one that has lost its state."""
        return []


class MachineCompressor:
    """A machine's side for float32, which sends models as they are; the subclass quantises."""

    def __init__(self, codec: Codec) -> None:
        self.codec = codec
        self._held = torch.zeros(codec.size)

    def decompress(self, message: Tensor) -> Tensor:
        """The server's model: a copy, since it serves later requests too, and the next message arrives where this one
        did."""
        return self._held.copy_(message)

    def compress(self, theta: Tensor) -> Tensor:
        """The message that brings this machine's model to the server."""
        return theta

    def state(self) -> dict[str, Tensor]:
        """Error feedback that the next round needs, for a checkpoint."""
        return {}

    def load_state(self, state: dict[str, Tensor]) -> None: ...

    def load_shared_state(self, vectors: Sequence[Tensor]) -> None:
        """What the server's shared_state() gave."""


class QuantizedServerCompressor(ServerCompressor):
    def __init__(self, codec: Codec) -> None:
        super().__init__(codec)
        self._message = codec.empty_message()
        self._models: list[Tensor] = []

    def compress(self, theta: Tensor) -> Tensor:
        for piece in self.codec.pieces:
            held, new = self.held[piece.span], theta[piece.span]
            self.codec.quantize(piece, _with_statistics(new - held, new, piece), self._message)
            _move(held, held, self.codec.dequantize(piece, self._message), piece)
        return self._message

    def decompress(self, theta: Tensor, messages: Sequence[Tensor]) -> Sequence[Tensor]:
        while len(self._models) < len(messages):
            self._models.append(torch.zeros(self.codec.size))
        models = self._models[: len(messages)]  # machines may be gone
        for piece in self.codec.pieces:
            for model, message in zip(models, messages, strict=True):
                _move(model[piece.span], theta[piece.span], self.codec.dequantize(piece, message), piece)
        return models

    def state(self) -> dict[str, Tensor]:
        return {"held": self.held}

    def load_state(self, state: dict[str, Tensor]) -> None:
        self.held = _fitting(state["held"], self.codec)

    def shared_state(self) -> list[Tensor]:
        return [self.held]


class QuantizedMachineCompressor(MachineCompressor):
    def __init__(self, codec: Codec) -> None:
        super().__init__(codec)
        self._residual = torch.zeros(codec.size)
        self._message = codec.empty_message()

    def decompress(self, message: Tensor) -> Tensor:
        for piece in self.codec.pieces:
            held = self._held[piece.span]
            _move(held, held, self.codec.dequantize(piece, message), piece)
        return self._held

    def compress(self, theta: Tensor) -> Tensor:
        for piece in self.codec.pieces:
            own, residual = theta[piece.span], self._residual[piece.span]
            wanted = _with_statistics((own - self._held[piece.span]).add_(residual), own, piece)
            self.codec.quantize(piece, wanted, self._message)
            residual.copy_(wanted.sub_(self.codec.dequantize(piece, self._message)))
        if not is_finite(self._residual):  # the server drops such an update, or ends the run
            self._residual.zero_()
        return self._message

    def state(self) -> dict[str, Tensor]:
        return {"held": self._held, "residual": self._residual}

    def load_state(self, state: dict[str, Tensor]) -> None:
        self._held, self._residual = (_fitting(state[name], self.codec) for name in ("held", "residual"))

    def load_shared_state(self, vectors: Sequence[Tensor]) -> None:
        (held,) = vectors
        self._held = _fitting(held.clone(), self.codec)


def server_compressor(dtype: str, statistics: Tensor) -> ServerCompressor:
    """`dtype` is algorithm.exchange_dtype, `statistics` [n] says where BatchNorm's are in the flat vector."""
    kind = ServerCompressor if dtype == ExchangeDtype.float32 else QuantizedServerCompressor
    return kind(CODECS[dtype](statistics))


def machine_compressor(dtype: str, statistics: Tensor) -> MachineCompressor:
    kind = MachineCompressor if dtype == ExchangeDtype.float32 else QuantizedMachineCompressor
    return kind(CODECS[dtype](statistics))


def _with_statistics(difference: Tensor, values: Tensor, piece: Piece) -> Tensor:
    """What is to cross: of learned parameters the difference, of statistics the value."""
    difference[piece.statistics] = values[piece.statistics]
    return difference


def _move(moved: Tensor, base: Tensor, crossed: Tensor, piece: Piece) -> None:
    """Writes into `moved` what `base` becomes by what crossed."""
    torch.add(base, crossed, out=moved)
    moved[piece.statistics] = crossed[piece.statistics]


def _fitting(vector: Tensor, codec: Codec) -> Tensor:
    if vector.shape != (codec.size,) or vector.dtype != torch.float32:
        raise ValueError(f"{vector.dtype}{list(vector.shape)} for a model of {codec.size}")
    return vector
