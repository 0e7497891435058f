"""What server and machines send each other in a round."""

from collections.abc import Generator
from dataclasses import astuple, dataclass, fields

import torch
from torch import Tensor


@dataclass(frozen=True)
class TrainStats:
    """What a machine tells about its round; crosses as a few float64 (control)."""

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

    def pack(self) -> Tensor:
        return torch.tensor(astuple(self), dtype=torch.float64)

    @staticmethod
    def unpack(values: Tensor) -> "TrainStats":
        typed = (f.type(value) for f, value in zip(fields(TrainStats), values.tolist(), strict=True))  # type: ignore[operator]
        return TrainStats(*typed)

    @staticmethod
    def size() -> int:
        return len(fields(TrainStats))


@dataclass(frozen=True)
class TrainRequest:
    """What the server sends at the start of a round: the model, and up to which round all ranks have checkpoints.

    `theta` as comm/error_feedback.py compresses it; None where the machines hold the model already, because every step
    is shared (full_sync).
    """

    theta: Tensor | None
    durable_round: int = 0


@dataclass(frozen=True)
class Update:
    """What a machine sends at the end of a round: its parameters, as comm/error_feedback.py compresses them, and stats.

    Only the parameters that are not the same everywhere: where every step is shared, BatchNorm's statistics.
    """

    theta: Tensor
    stats: TrainStats


MachineRound = Generator[Tensor, Tensor, Update]
"""A machine's round: yields its gradient where it waits for everyone's mean, and returns its update."""


@dataclass(frozen=True)
class MessageSizes:
    """What the messages of a job hold: elements of the model and of an update (of `dtype`), of a gradient (float32)."""

    model: int
    update: int
    gradient: int
    model_every_round: bool = True
    """Otherwise the model crosses once, at the start."""
    dtype: torch.dtype = torch.float32
