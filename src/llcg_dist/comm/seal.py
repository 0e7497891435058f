"""A seal on a value of the job's store: nobody without the job's key makes one that opens.

A sealed value is an HMAC-SHA256 over the name of its key in the store, its counter and its content, then the counter,
then the content. The name keeps a value from being moved to another place, the counter from being put back later.
"""

import hashlib
import hmac
import struct
from dataclasses import dataclass

_TAG_BYTES = hashlib.sha256().digest_size
_COUNTER = struct.Struct(">Q")
_PURPOSE = b"llcg_dist: value of the job's store\0"
"""Sets these seals apart from whatever else the job's key may protect."""


@dataclass(frozen=True)
class SealedValue:
    """An authentic value as it is stored (`sealed`), and what is in it."""

    counter: int
    content: bytes
    sealed: bytes


class Seal:
    """Seals values with the job's key, and opens those that are authentic."""

    def __init__(self, key: bytes) -> None:
        self._key = hmac.digest(key, _PURPOSE, "sha256")

    def close(self, name: str, counter: int, content: bytes) -> SealedValue:
        """Seals the content for this place in the store."""
        body = _COUNTER.pack(counter) + content
        return SealedValue(counter, content, self._tag(name, body) + body)

    def open(self, name: str, sealed: bytes) -> SealedValue | None:
        """What was sealed for this place; None where the value is anything else. Nothing of it is decoded before."""
        tag, body = sealed[:_TAG_BYTES], sealed[_TAG_BYTES:]
        if len(body) < _COUNTER.size or not hmac.compare_digest(tag, self._tag(name, body)):
            return None
        return SealedValue(_COUNTER.unpack_from(body)[0], body[_COUNTER.size :], sealed)

    def _tag(self, name: str, body: bytes) -> bytes:
        encoded = name.encode()
        return hmac.digest(self._key, _COUNTER.pack(len(encoded)) + encoded + body, "sha256")
