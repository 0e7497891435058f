"""The keys of two ranks that talk to each other, and what they do with them: seal messages, open those that are due.

Every direction of every link has a key of its own, from the job's key and two salts, one of each end, drawn anew
whenever the link is made. So no key serves two starts or two incarnations of a link, and within one the number of a
message is its nonce: no pair of key and nonce is ever used twice.
"""

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from llcg_dist.comm.frame import HEADER_BYTES, TAG_BYTES, UNKNOWN_PART, Header, Label, Route, SealError
from llcg_dist.comm.ledger import Kind

SALT_BYTES = 32
LARGEST_MESSAGE = 2**31 - 1 - TAG_BYTES
"""Bytes of content that the ciphers of the library take at once."""
_CIPHERS: dict[str, Any] = {"AES-256-GCM": AESGCM, "ChaCha20-Poly1305": ChaCha20Poly1305}
_PURPOSE = b"llcg_dist: messages between ranks\0"
"""Sets these keys apart from whatever else the job's key may protect."""


def new_salt() -> bytes:
    """One end's share in the keys of a link."""
    return secrets.token_bytes(SALT_BYTES)


def has_fast_aes(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether this CPU has instructions for AES."""
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    return any("aes" in line.split() for line in lines if line.lower().startswith(("flags", "features")))


def choose_cipher(fast_aes: Sequence[bool]) -> str:
    """The cipher of a job. `fast_aes[r]`: rank r's CPU has instructions for AES; without them ChaCha20 is faster."""
    aes, chacha = _CIPHERS
    return aes if all(fast_aes) else chacha


@dataclass(frozen=True)
class Scope:
    """What the links of one start of a job have in common."""

    job: str
    """A word that is new at every start."""
    key: bytes
    cipher: str

    def route(self, sender: int, receiver: int, incarnation: int) -> Route:
        job = hashlib.sha256(self.job.encode()).digest()[:16]
        return Route(job, sender, receiver, incarnation, list(_CIPHERS).index(self.cipher))


class Session:
    """One end of a link between two ranks, in one incarnation of it."""

    def __init__(self, scope: Scope, ends: tuple[int, int], salts: tuple[bytes, bytes], incarnation: int = 0) -> None:
        """`ends` and `salts`: this end's first."""
        own, other = ends
        outward, inward = scope.route(own, other, incarnation), scope.route(other, own, incarnation)
        in_order = salts if own < other else salts[::-1]
        self._outward, self._inward = outward, inward
        self._sealing = _cipher(scope.cipher, _derived(scope.key, in_order, outward))
        self._opening = _cipher(scope.cipher, _derived(scope.key, in_order, inward))
        self._sent = self._received = 0
        self.part: int | None = None
        """Of the link's machine, once it is known; between two machines the other's."""

    @property
    def peer(self) -> str:
        """The name of the other end."""
        if not self._inward.sender:
            return "rank 0 (server)"
        return f"rank {self._inward.sender}" + ("" if self.part is None else f" (part {self.part})")

    def seal(self, label: Label, content: memoryview, frame: memoryview) -> int:
        """Writes the sealed content into the frame's memory; returns how many bytes of it to send."""
        part = UNKNOWN_PART if self.part is None or self._outward.sender and self._outward.receiver else self.part
        header = Header(self._outward, label, part, self._sent, len(content)).pack()
        end = HEADER_BYTES + len(content) + TAG_BYTES
        frame[:HEADER_BYTES] = header
        self._sealing.encrypt_into(_nonce(self._sent), content, header, frame[HEADER_BYTES:end])
        self._sent += 1
        return end

    def open(self, frame: memoryview, content: memoryview | None = None) -> Header:
        """The header of the message that is due. Its content goes to the given memory, which it must fill; otherwise
        it stays where it is, in the clear. SealError for any other message."""
        packed = bytes(frame[:HEADER_BYTES])
        header = self._due(packed, len(frame) - HEADER_BYTES - TAG_BYTES, content)
        sealed = frame[HEADER_BYTES : HEADER_BYTES + header.length + TAG_BYTES]
        try:
            self._opening.decrypt_into(
                _nonce(self._received), sealed, packed, sealed[: header.length] if content is None else content
            )
        except InvalidTag:
            raise self._refused("it was not sealed with this job's key, or was changed or cut short") from None
        self._received += 1
        return header

    def _due(self, packed: bytes, capacity: int, content: memoryview | None) -> Header:
        """What the header says, where this message may be the next one; the seal has the last word."""
        header = Header.unpack(packed) if len(packed) == HEADER_BYTES else None
        if header is None:
            raise self._refused("it is no sealed message of this version of llcg_dist")
        said, due = header.route, self._inward
        if said.job != due.job:
            raise self._refused("it belongs to another start of a job")
        if said != due:
            told = f"from rank {said.sender} to rank {said.receiver}, incarnation {said.incarnation}"
            raise self._refused(f"it was sealed for another link ({told})")
        if header.part not in (UNKNOWN_PART, self.part) and self.part is not None:
            raise self._refused(f"it says that it is about part {header.part}")
        if header.number != self._received:
            why = "it was sent before" if header.number < self._received else "messages before it are missing"
            place = f"message {header.number}, of round {header.label.round}; message {self._received} was due"
            raise self._refused(f"{why} ({place})")
        if header.length > capacity or (content is not None and header.length != len(content)):
            raise self._refused(f"it says that it has {header.length} bytes, which no message has here")
        return header

    def _refused(self, reason: str) -> SealError:
        return SealError(f"a message from {self.peer} is refused: {reason}")


def _derived(key: bytes, salts: tuple[bytes, bytes], route: Route) -> bytes:
    """The key of one direction of a link."""
    about = Header(route, Label(Kind.SEALING), UNKNOWN_PART, number=0, length=0).pack()
    return HKDF(SHA256(), 32, salt=b"".join(salts), info=_PURPOSE + about).derive(key)


def _cipher(name: str, key: bytes) -> Any:
    return _CIPHERS[name](key)


def _nonce(number: int) -> bytes:
    return number.to_bytes(12, "big")
