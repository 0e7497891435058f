"""The link between the server and one machine, members 0 and 1 of a process group of two: as it is, or sealed.

A link sends and receives one message at a time, in order; both return work to wait for. A message crosses a plain link
as its bytes alone, a sealed one in a frame (comm/frame.py). A sealed link belongs to one incarnation: when a machine is
replaced, its successor gets a new group, a new session and a new link.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Protocol

import torch
from torch import Tensor

from llcg_dist.comm.frame import HEADER_BYTES, SEAL_BYTES, FrameBuffer, Label, SealError
from llcg_dist.comm.gpu_path import GpuPath
from llcg_dist.comm.ledger import Kind, Phase
from llcg_dist.comm.session import Session
from llcg_dist.comm.waiter import FOREVER
from llcg_dist.errors import ProtocolError

PROOF = Label(Kind.SEALING, phase=Phase.HANDSHAKE)
"""The first message of a sealed link: without content, and the first that either end reads."""


class Link(Protocol):
    seal_bytes: int
    """What sealing adds to a message."""
    part: int | None
    """Of the machine, once it is known."""

    def send(self, message: Tensor, label: Label) -> Any:
        """Work that ends when the message has left; the tensor stays as it is until then."""

    def receive(self, frame: FrameBuffer) -> Any:
        """Work that ends when a message, at most as long as the buffer's body, has arrived there."""


class PlainLink:
    """Messages as they are, on Gloo. Where both ends have a GPU of their own, what follows the head of a message takes
    the way between these: exactly as many bytes as the head says."""

    seal_bytes = 0
    part: int | None = None

    def __init__(self, peer: int, gloo: Any, gpus: GpuPath | None = None) -> None:
        """`peer`: the other member of the group of two."""
        self._peer, self._gloo, self._gpus = peer, gloo, gpus

    def send(self, message: Tensor, label: Label) -> Any:
        if self._gpus is None or not 0 < label.head < len(message):
            return self.send_bytes(message)
        head, following = self.send_bytes(message[: label.head]), self._gpus.send(message[label.head :])
        return _Both(head, following)

    def receive(self, frame: FrameBuffer) -> Any:
        if self._gpus is None or not frame.head:
            return self.receive_bytes(frame.body)
        return _Then(self.receive_bytes(frame.body[: frame.head]), lambda: self._receive_following(frame))

    def _receive_following(self, frame: FrameBuffer) -> None:
        size, room = frame.following(frame.body), len(frame.body) - frame.head
        if not 0 <= size <= room:
            raise ProtocolError(f"a message announced {size} bytes of content, of which {room} fit")
        if size and self._gpus is not None:
            self._gpus.receive(frame.body[frame.head : frame.head + size], FOREVER)

    def send_bytes(self, message: Tensor) -> Any:
        return self._gloo.send([message], self._peer, 0)

    def receive_bytes(self, buffer: Tensor) -> Any:
        return self._gloo.recv([buffer], self._peer, 0)


class SealedLink:
    """Messages in frames that only the two ends can make and read."""

    seal_bytes = SEAL_BYTES

    def __init__(self, link: PlainLink, session: Session) -> None:
        self._link, self._session = link, session
        self._free: list[Tensor] = []
        """Memory of frames that have left: new memory would cost as much time as filling it."""

    @property
    def part(self) -> int | None:
        return self._session.part

    @part.setter
    def part(self, part: int | None) -> None:
        self._session.part = part

    def send(self, message: Tensor, label: Label) -> Any:
        """One pass over the message: it is encrypted into memory of this link's own, as each machine's differs."""
        content = message.reshape(-1).view(torch.uint8)
        frame = self._memory(content.numel() + SEAL_BYTES)
        size = self._session.seal(label, content.numpy().data, frame.numpy().data)
        return _Then(self._link.send_bytes(frame[:size]), lambda: self._free.append(frame))

    def receive(self, frame: FrameBuffer) -> Any:
        """A message is decrypted where it arrived, by whoever waits for it."""
        frame.whole[:HEADER_BYTES].zero_()  # of an earlier message: a shorter one would leave it there
        return _Then(self._link.receive_bytes(frame.whole), lambda: self._open(frame))

    def prove(self, limit: timedelta) -> None:
        """Both ends show each other that they have the job's key, before they read anything else."""
        sent, frame = self.send(torch.empty(0, dtype=torch.uint8), PROOF), FrameBuffer(0)
        received = self.receive(frame)
        try:
            for work in (received, sent):  # a stranger may never take what is sent
                work.wait(limit)
        except SealError as error:
            raise SealError(f"{self._session.peer} has not proved that it has this job's key: {error}") from error

    def _open(self, frame: FrameBuffer) -> None:
        frame.header = self._session.open(frame.whole.numpy().data)

    def _memory(self, size: int) -> Tensor:
        frame = self._free.pop() if self._free else None
        return frame if frame is not None and len(frame) >= size else torch.empty(size, dtype=torch.uint8)


class _Both:
    """Work that ends when two have."""

    def __init__(self, first: Any, second: Any) -> None:
        self._works = first, second

    def wait(self, limit: timedelta) -> None:
        for work in self._works:
            work.wait(limit)


class _Then:
    """Work, and what is done once it has ended."""

    def __init__(self, work: Any, action: Callable[[], None]) -> None:
        self._work, self._action = work, action

    def wait(self, limit: timedelta) -> None:
        self._work.wait(limit)
        self._action()
