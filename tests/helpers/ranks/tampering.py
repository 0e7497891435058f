"""What someone on the way does to sealed messages, at the place where a rank hands them to Gloo; and what a rank seals
with. Together with leaks.py the only place where tests reach into a rank's code."""

import hashlib
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from llcg_dist.comm import session
from llcg_dist.comm.frame import Label
from llcg_dist.comm.ledger import Kind
from llcg_dist.comm.links import PlainLink

FIRST_MACHINE, SECOND_MACHINE = "1", "2"
_send, _cipher, _seal = PlainLink.send_bytes, session._cipher, session.Session.seal
_exchanged = Path(tempfile.gettempdir()) / f"llcg-swapped-{os.getppid()}"  # the ranks have the same parent
_sent: list[Tensor] = []
used: set[tuple[str, str]] = set()
"""The key (its hash) and the nonce of every message that this rank has sealed."""
repeated: list[tuple[str, str]] = []


def of_rank(rank: str, tampered: Callable[[Tensor], Tensor]) -> Callable[[], None]:
    """To be called at every machine: the next message of this rank is changed on its way, once."""

    def install() -> None:
        def send(link: PlainLink, message: Tensor) -> Any:
            PlainLink.send_bytes = _noted  # type: ignore[method-assign, assignment]
            changed = tampered(message)
            _sent.append(changed)  # Gloo reads it until it has left
            return _send(link, changed)

        if os.environ["RANK"] == rank:
            PlainLink.send_bytes = send  # type: ignore[method-assign, assignment]

    return install


def _noted(link: PlainLink, message: Tensor) -> Any:
    _sent[:] = [message.clone()]
    return _send(link, message)


PlainLink.send_bytes = _noted  # type: ignore[method-assign, assignment]


def flip(message: Tensor) -> Tensor:
    changed = message.clone()
    changed[len(changed) // 2] ^= 4
    return changed


def replay(message: Tensor) -> Tensor:
    """The last message of this machine once more, with whatever length it had."""
    return _sent[0].clone()


def publish(message: Tensor) -> Tensor:
    """Lets it through, and leaves a copy for the other machine's link."""
    unfinished = _exchanged.with_suffix(".new")
    unfinished.write_bytes(message.numpy().tobytes())
    unfinished.rename(_exchanged)
    return message.clone()


def take(message: Tensor) -> Tensor:
    end = time.monotonic() + 60
    while not _exchanged.exists() and time.monotonic() < end:
        time.sleep(0.01)
    content = bytearray(_exchanged.read_bytes())
    _exchanged.unlink()
    return torch.frombuffer(content, dtype=torch.uint8)


def swap() -> None:
    of_rank(FIRST_MACHINE, publish)()
    of_rank(SECOND_MACHINE, take)()


def flip_features() -> None:
    """The next features that the first machine sends to the other are changed, once; frames among machines do not go
    over a PlainLink."""

    def seal(sender: session.Session, label: Label, content: Any, frame: Any) -> int:
        length = _seal(sender, label, content, frame)
        if label.kind == Kind.FEATURES:
            session.Session.seal = _seal  # type: ignore[method-assign]
            frame[length - 20] ^= 4
        return length

    if os.environ["RANK"] == FIRST_MACHINE:
        session.Session.seal = seal  # type: ignore[method-assign, assignment]


class _Spy:
    """A cipher that notes what it seals with."""

    def __init__(self, name: str, key: bytes) -> None:
        self._digest, self._cipher = hashlib.sha256(key).hexdigest()[:32], _cipher(name, key)

    def encrypt_into(self, nonce: bytes, *rest: Any) -> int:
        pair = (self._digest, nonce.hex())
        if pair in used:
            repeated.append(pair)
        used.add(pair)
        return self._cipher.encrypt_into(nonce, *rest)

    def decrypt_into(self, *arguments: Any) -> int:
        return self._cipher.decrypt_into(*arguments)


session._cipher = _Spy

TAMPERING: dict[str | None, Callable[[], None]] = {
    "flip": of_rank(FIRST_MACHINE, flip),
    "truncate": of_rank(FIRST_MACHINE, lambda message: message[:100].clone()),
    "replay": of_rank(SECOND_MACHINE, replay),
    "swap": swap,
    "flip_features": flip_features,
}
