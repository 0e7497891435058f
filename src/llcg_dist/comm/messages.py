"""What server and machines say to each other in a round: a request from the server, one reply from every machine.

    Train    -> Trained      take the local steps of a round from this model; the model they led to
    Measure  -> Gradient     the gradient at this model over all that a machine trains on (diagnostics)
    Restore  -> Restored     state that the server shares with all machines, where one has lost its checkpoints
    Finish   ->              the run is over; no reply

A method that needs more declares its own (`Algorithm.messages`).
"""

from dataclasses import astuple, dataclass, fields
from typing import ClassVar

import torch
from torch import Tensor

from llcg_dist.comm.ledger import Kind, Phase


@dataclass(frozen=True)
class TrainStats:
    """What a machine tells about its round; crosses as float64 numbers (control)."""

    train_loss: float
    seconds_local: float
    steps: int
    peak_rss_mb: float
    checkpoint_round: int = 0
    """The newest round that the machine has safely on its disk."""
    checkpoint_failed: int = 0
    seconds_checkpoint: float = 0.0
    checkpoint_bytes: int = 0
    feature_pairs: int = 0
    """Fetches of remote features times other machines, and the bytes that these moved: see remote_rows.py."""
    feature_id_bytes: int = 0
    feature_row_bytes: int = 0
    cpu_local: float = 0.0
    """CPU seconds of what took seconds_local, in all threads of the process."""
    began: float = 0.0
    """When the machine began its round, and when it had its result: seconds since 1970 by its host's clock."""
    ended: float = 0.0

    def pack(self) -> Tensor:
        return torch.tensor(astuple(self), dtype=torch.float64)

    @staticmethod
    def unpack(values: Tensor) -> "TrainStats":
        typed = (f.type(value) for f, value in zip(fields(TrainStats), values.tolist(), strict=True))  # type: ignore[operator]
        return TrainStats(*typed)


NUM_STATS = len(fields(TrainStats))


@dataclass(frozen=True)
class Message:
    """All messages have this shape; their classes say what they mean."""

    round: int
    content: Tensor | None = None
    """[n] float32: the flat vector that the message is about, if any."""
    durable_round: int = 0
    """Of a request: the newest round that every rank has a checkpoint of."""
    stats: TrainStats | None = None
    """Of the reply that ends a machine's round."""
    part: int | None = None
    """Of a reply, at the server: whose it is."""

    kind: ClassVar[Kind] = Kind.CONTROL
    """What the content is counted as."""
    is_model: ClassVar[bool] = False
    """The content is a model: it is compressed as algorithm.exchange_dtype says, and a machine remembers it."""
    ends_round: ClassVar[bool] = False
    """A machine's last message of a round: it brings stats."""
    has_reply: ClassVar[bool] = True
    phase: ClassVar[Phase] = Phase.ROUND
    """What the message is part of, for the ledger."""
    reply_may_be: ClassVar[frozenset[Kind]] = frozenset()
    """Kinds of content that the reply may have, besides those that the method allows."""

    @property
    def vector(self) -> Tensor:
        """The content of a message that has one."""
        assert self.content is not None, f"{type(self).__name__} without content"
        return self.content


class Train(Message):
    """Take the local steps of this round from the model, and send the model that they lead to."""

    kind, is_model = Kind.PARAMETERS, True


class Trained(Message):
    """A machine's model after its local steps, and how the round went."""

    kind, is_model, ends_round = Kind.PARAMETERS, True, True


class Measure(Message):
    """Compute the gradient at this model over all training nodes of the part, with all their neighbours."""

    kind, is_model = Kind.PARAMETERS, True
    reply_may_be = frozenset({Kind.GRADIENTS})


class Gradient(Message):
    """[number of learned parameters]: a gradient on its way to the server."""

    kind = Kind.GRADIENTS


class Restore(Message):
    """A vector of the state that the server shares with all machines (Algorithm.shared_state); one without content
    ends them."""

    kind, phase = Kind.PARAMETERS, Phase.HANDSHAKE


class Restored(Message):
    """A machine has taken the vector, or, after the last, has its state and a checkpoint of it."""

    phase = Phase.HANDSHAKE


class Finish(Message):
    """The run is over."""

    has_reply = False


MESSAGES: tuple[type[Message], ...] = (Train, Trained, Measure, Gradient, Finish, Restore, Restored)
"""What every method uses."""
