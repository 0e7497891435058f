"""Sealed values: what opens is exactly what was sealed, with this key, for this place."""

import hashlib
import hmac
import struct

import pytest

from llcg_dist.comm.seal import Seal

KEY = bytes(range(32))


def test_a_seal_by_hand() -> None:
    purpose = hmac.new(KEY, b"llcg_dist: value of the job's store\0", hashlib.sha256).digest()
    body = struct.pack(">Q", 7) + b"content"
    tag = hmac.new(purpose, struct.pack(">Q", 6) + b"beat/1" + body, hashlib.sha256).digest()
    value = Seal(KEY).close("beat/1", 7, b"content")
    assert value.sealed == tag + body
    assert Seal(KEY).open("beat/1", tag + body) == value


@pytest.mark.parametrize("content", [b"", b"x", b"\0" * 1000])
def test_what_was_sealed_opens(content: bytes) -> None:
    seal = Seal(KEY)
    opened = seal.open("name", seal.close("name", 2**64 - 1, content).sealed)
    assert opened is not None
    assert (opened.counter, opened.content) == (2**64 - 1, content)


def test_nothing_else_opens() -> None:
    seal = Seal(KEY)
    sealed = seal.close("beat/1", 5, b"12").sealed
    assert seal.open("beat/2", sealed) is None  # moved to another key
    assert Seal(bytes(32)).open("beat/1", sealed) is None  # sealed with another key
    assert all(seal.open("beat/1", sealed[:length]) is None for length in range(len(sealed)))
    assert seal.open("beat/1", sealed + b"\0") is None
    for place in range(len(sealed)):
        for bit in range(8):
            flipped = bytearray(sealed)
            flipped[place] ^= 1 << bit
            assert seal.open("beat/1", bytes(flipped)) is None
    assert seal.open("beat/1", b"12") is None


def test_name_and_content_do_not_run_into_each_other() -> None:
    """The same bytes, divided elsewhere."""
    seal = Seal(KEY)
    value = seal.close("ab", int.from_bytes(b"cdefghij"), b"k")
    assert seal.open("abc", value.sealed[:32] + b"defghijk" + b"") is None
