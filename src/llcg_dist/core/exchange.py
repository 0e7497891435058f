"""What either end of an exchange remembers, so that rounding (codec.py) delays digits and loses none.

    server -> machines    the new model less what the machines hold; they hold nothing before the first
    machine -> server     its model less the one it received, and what rounding kept back the round before (residual)

The server knows to the bit what the machines hold, so what one message did not bring is in the next difference. It adds
a machine's difference to its own exact model: digits that are still under way to the machines are not lost there.
With float32 nothing is rounded and nothing remembered: models cross as they are.
"""

import torch
from torch import Tensor

from llcg_dist.core.accept import is_finite
from llcg_dist.core.codec import CODECS, Codec


class ServerEnd:
    """float32; subclasses say what differs."""

    def __init__(self, codec: Codec) -> None:
        self.codec = codec
        self.held = torch.zeros(codec.size)
        """The model as the machines have it."""

    def send(self, theta: Tensor) -> Tensor:
        """The message to every machine."""
        self.held = theta
        return self.codec.encode(theta)

    def received(self, theta: Tensor, message: Tensor) -> Tensor:
        """A machine's model; `theta` is what the server sent it."""
        return message

    def state(self) -> dict[str, Tensor]:
        """All that the next round needs."""
        return {}

    def load_state(self, state: dict[str, Tensor]) -> None: ...


class MachineEnd:
    """float32; subclasses say what differs."""

    def __init__(self, codec: Codec) -> None:
        self.codec = codec

    def received(self, message: Tensor) -> Tensor:
        """The server's model."""
        return message

    def send(self, theta: Tensor) -> Tensor:
        """The message that brings this machine's model to the server."""
        return self.codec.encode(theta)

    def state(self) -> dict[str, Tensor]:
        """All that the next round needs."""
        return {}

    def load_state(self, state: dict[str, Tensor]) -> None: ...


class RoundedServerEnd(ServerEnd):
    def send(self, theta: Tensor) -> Tensor:
        message = self.codec.encode(_difference(theta, self.held, self.codec))
        self.held = _moved(self.held, self.codec.decode(message), self.codec)
        return message

    def received(self, theta: Tensor, message: Tensor) -> Tensor:
        return _moved(theta, self.codec.decode(message), self.codec)

    def state(self) -> dict[str, Tensor]:
        return {"held": self.held}

    def load_state(self, state: dict[str, Tensor]) -> None:
        self.held = _fitting(state["held"], self.codec)


class RoundedMachineEnd(MachineEnd):
    def __init__(self, codec: Codec) -> None:
        super().__init__(codec)
        self._held, self._residual = torch.zeros(codec.size), torch.zeros(codec.size)

    def received(self, message: Tensor) -> Tensor:
        self._held = _moved(self._held, self.codec.decode(message), self.codec)
        return self._held

    def send(self, theta: Tensor) -> Tensor:
        wanted = _difference(theta, self._held, self.codec, self._residual)
        message = self.codec.encode(wanted)
        self._residual = wanted.sub_(self.codec.decode(message))
        if not is_finite(self._residual):  # the server drops such an update, or ends the run
            self._residual = torch.zeros_like(wanted)
        return message

    def state(self) -> dict[str, Tensor]:
        return {"held": self._held, "residual": self._residual}

    def load_state(self, state: dict[str, Tensor]) -> None:
        self._held, self._residual = (_fitting(state[name], self.codec) for name in ("held", "residual"))


def server_end(dtype: str, statistics: Tensor) -> ServerEnd:
    """`dtype` is algorithm.exchange_dtype, `statistics` [n] says where BatchNorm's are in the flat vector."""
    kind = ServerEnd if dtype == "float32" else RoundedServerEnd
    return kind(CODECS[dtype](statistics))


def machine_end(dtype: str, statistics: Tensor) -> MachineEnd:
    kind = MachineEnd if dtype == "float32" else RoundedMachineEnd
    return kind(CODECS[dtype](statistics))


def _difference(theta: Tensor, held: Tensor, codec: Codec, residual: Tensor | None = None) -> Tensor:
    """What is to cross: of learned parameters the difference, of statistics the value."""
    wanted = theta - held
    if residual is not None:
        wanted += residual
    wanted[codec.statistics] = theta[codec.statistics]
    return wanted


def _moved(held: Tensor, crossed: Tensor, codec: Codec) -> Tensor:
    """The model that `held` becomes by what crossed."""
    moved = held + crossed
    moved[codec.statistics] = crossed[codec.statistics]
    return moved


def _fitting(vector: Tensor, codec: Codec) -> Tensor:
    if vector.shape != (codec.size,) or vector.dtype != torch.float32:
        raise ValueError(f"{vector.dtype}{list(vector.shape)} for a model of {codec.size}")
    return vector
