"""A machine whose updates are clipped and noised before they reach its channel, which compresses them."""

import os
import secrets
from dataclasses import replace
from pathlib import Path

from llcg_dist.comm.machine_channel import Handler
from llcg_dist.comm.messages import Message, Trained
from llcg_dist.errors import UserError
from llcg_dist.training.protection import Protection

_SECRET_BYTES = 32


class ProtectedMachine:
    """Stands between a machine and its channel."""

    def __init__(self, machine: Handler, protection: Protection) -> None:
        self._machine, self._protection = machine, protection

    def handle(self, request: Message) -> Message | None:
        start = request.content.clone() if request.content is not None else None
        reply = self._machine.handle(request)
        if not isinstance(reply, Trained) or start is None:
            return reply
        stats = reply.stats
        if stats and self._protection.hides:
            stats = replace(stats, train_loss=float("nan"))  # a number about the data, without noise
        return replace(reply, content=self._protection.applied(reply.vector, start, reply.round), stats=stats)

    def after_reply(self) -> None:
        self._machine.after_reply()


def noise_secret(folder: Path, part: int) -> bytes:
    """The secret of a part's machine: random bytes in a file of mode 0600 beside its checkpoints, made at the first
    start, so that a run that goes on repeats its noise."""
    path = folder / f"part{part}.noise"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(_SECRET_BYTES))
            file.flush()
            os.fsync(file.fileno())
    except FileExistsError:
        pass
    content = path.read_bytes()
    if len(content) != _SECRET_BYTES:
        raise UserError(f"{path}: is no secret of {_SECRET_BYTES} bytes; remove it, and a new one is made")
    return content
