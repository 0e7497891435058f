"""Sealed messages open at the other end, once and in order; no other bytes do."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

from llcg_dist.comm import session as session_module
from llcg_dist.comm.frame import HEADER_BYTES, SEAL_BYTES, Label, SealError
from llcg_dist.comm.ledger import Direction, Kind
from llcg_dist.comm.session import Scope, Session, choose_cipher, has_fast_aes, new_salt
from tests.helpers.sessions import KEY, MODEL, SCOPE, received, sealed, two_ends

CONTENT = bytes(range(200))
CIPHERS: dict[str, Any] = {"AES-256-GCM": AESGCM, "ChaCha20-Poly1305": ChaCha20Poly1305}


@pytest.mark.parametrize("cipher", CIPHERS)
def test_a_message_opens_where_it_lies_and_says_what_it_is(cipher: str) -> None:
    server, machine = two_ends(scope=Scope("llcg/start", KEY, cipher))
    for ends, direction in (((server, machine), Direction.DOWN), ((machine, server), Direction.UP)):
        for content in (CONTENT, b"", b"x"):
            frame = sealed(ends[0], content)
            assert CONTENT[:40] not in frame
            header = ends[1].open(memoryview(frame))
            assert frame[HEADER_BYTES : HEADER_BYTES + len(content)] == content
            assert (header.label, header.length, header.route.direction) == (MODEL, len(content), direction)


def test_a_message_opens_into_other_memory_that_it_fills() -> None:
    server, machine = two_ends()
    place = bytearray(len(CONTENT))
    machine.open(memoryview(sealed(server, CONTENT)), memoryview(place))
    assert place == CONTENT
    with pytest.raises(SealError, match="it says that it has 200 bytes"):
        machine.open(memoryview(sealed(server, CONTENT)), memoryview(bytearray(199)))


def flipped(place: int) -> Callable[[bytearray], bytes]:
    return lambda frame: bytes(byte ^ (4 if i == place % len(frame) else 0) for i, byte in enumerate(frame))


DAMAGED: dict[str, tuple[Callable[[bytearray], bytes], str]] = {
    "content": (flipped(HEADER_BYTES + 17), "it was not sealed with this job's key, or was changed or cut short"),
    "seal": (flipped(-1), "it was not sealed with this job's key, or was changed or cut short"),
    "truncated": (lambda frame: bytes(frame[:-1]), "changed or cut short"),
    "a hundred bytes": (lambda frame: bytes(frame[:100]), "changed or cut short"),
    "nothing": (lambda frame: b"", "it is no sealed message"),
    "noise": (lambda frame: b"x" * len(frame), "it is no sealed message"),
    "magic": (flipped(0), "it is no sealed message"),
    "version": (flipped(4), "it is no sealed message of this version"),
    "kind": (flipped(5), "no sealed message|changed"),
    "direction": (flipped(6), "no sealed message"),
    "cipher": (flipped(7), "for another link"),
    "job": (flipped(8), "another start"),
    "sender": (flipped(27), "from rank 4 to rank 1|no sealed message"),
    "incarnation": (flipped(39), "from rank 0 to rank 1, incarnation 4"),
    "round": (flipped(47), "changed or cut short"),
    "number": (flipped(55), "messages before it are missing"),
    "length": (flipped(62), "bytes, which no message has here"),
    "shorter": (lambda frame: bytes([*frame[:63], 8, *frame[64:]]), "changed or cut short"),
}


@pytest.mark.parametrize("how", DAMAGED)
def test_a_damaged_message_is_refused_and_names_its_sender(how: str) -> None:
    """It arrives where the message before lies: bytes that are missing are that one's."""
    damage, why = DAMAGED[how]
    server, machine = two_ends()
    machine.part = 0
    buffer = torch.zeros(SEAL_BYTES + len(CONTENT), dtype=torch.uint8)
    machine.open(received(sealed(server, CONTENT), buffer))
    with pytest.raises(SealError, match=f"^a message from rank 0 .server. is refused: .*({why})"):
        machine.open(received(damage(sealed(server, CONTENT)), buffer))


def test_a_replayed_message_is_refused_and_so_is_one_out_of_turn() -> None:
    server, machine = two_ends(machine=2)
    server.part = machine.part = 1
    first, second, third = (sealed(machine, CONTENT, Label(Kind.PARAMETERS, round_)) for round_ in (1, 2, 3))
    recorded = bytes(first)
    server.open(memoryview(first))
    line = r"a message from rank 2 \(part 1\) is refused: it was sent before \(message 0, of round 1; message 1 was due"
    with pytest.raises(SealError, match=line):
        server.open(memoryview(bytearray(recorded)))
    with pytest.raises(SealError, match="messages before it are missing"):
        server.open(memoryview(third))
    server.open(memoryview(second))  # what was refused has changed nothing


def test_a_message_of_another_part_or_of_an_earlier_incarnation_is_refused() -> None:
    """Also under a header that was changed to fit."""
    (server, _), (_, other) = two_ends(machine=1), two_ends(machine=2)
    own = sealed(two_ends(machine=1)[1], CONTENT)
    swapped = sealed(other, CONTENT)
    with pytest.raises(SealError, match="from rank 1 is refused: it was sealed for another link .from rank 2 to"):
        server.open(memoryview(bytearray(swapped)))
    with pytest.raises(SealError, match="not sealed with this job's key"):
        server.open(memoryview(own[:HEADER_BYTES] + swapped[HEADER_BYTES:]))
    _, earlier = two_ends(incarnation=0)
    later, _ = two_ends(incarnation=1)
    with pytest.raises(SealError, match="incarnation 0"):
        later.open(memoryview(sealed(earlier, CONTENT)))
    with pytest.raises(SealError, match="another start"):
        server.open(memoryview(sealed(two_ends(scope=Scope("llcg/other", KEY, "AES-256-GCM"))[1], CONTENT)))


def test_a_message_about_another_part_is_refused() -> None:
    server, machine = two_ends()
    server.part, machine.part = 0, 1
    with pytest.raises(SealError, match=r"rank 1 \(part 0\) is refused: it says that it is about part 1"):
        server.open(memoryview(sealed(machine, CONTENT)))


def test_a_message_is_not_taken_for_one_in_the_other_direction() -> None:
    server, machine = two_ends()
    with pytest.raises(SealError, match="sealed for another link|no sealed message"):
        server.open(memoryview(sealed(server, CONTENT)))
    assert sealed(two_ends()[0], CONTENT) != sealed(machine, CONTENT)


def test_whoever_has_another_key_is_refused() -> None:
    server, machine = two_ends(machines_scope=Scope("llcg/start", bytes(32), "AES-256-GCM"))
    with pytest.raises(SealError, match="not sealed with this job's key"):
        server.open(memoryview(sealed(machine, CONTENT)))


def test_no_key_serves_twice_and_no_number_within_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three starts of the same job, two incarnations of each of its links, both directions."""
    used: list[tuple[bytes, bytes]] = []

    class Spy:
        def __init__(self, name: str, key: bytes) -> None:
            self._key, self._cipher = key, CIPHERS[name](key)

        def encrypt_into(self, nonce: bytes, *rest: Any) -> int:
            used.append((self._key, nonce))
            return self._cipher.encrypt_into(nonce, *rest)

    monkeypatch.setattr(session_module, "_cipher", Spy)
    for _ in range(3):
        for machine in (1, 2):
            for incarnation in (0, 1):
                for end in two_ends(machine, incarnation):
                    for _ in range(5):
                        sealed(end, CONTENT)
    assert len(used) == len(set(used)) == 3 * 2 * 2 * 2 * 5
    assert len({key for key, _ in used}) == 3 * 2 * 2 * 2


def test_ends_with_different_salts_do_not_understand_each_other() -> None:
    """So an end that is fed an old salt of the other's still seals with a key that nobody has used."""
    own = new_salt()
    server = Session(SCOPE, (0, 1), (own, new_salt()))
    machine = Session(SCOPE, (1, 0), (new_salt(), own))
    with pytest.raises(SealError):
        machine.open(memoryview(sealed(server, CONTENT)))


def test_a_job_takes_aes_where_every_cpu_has_instructions_for_it(tmp_path: Path) -> None:
    assert choose_cipher([True, True]) == "AES-256-GCM"
    assert choose_cipher([True, False]) == "ChaCha20-Poly1305"
    for name, line, has in (("x86", "flags\t\t: fpu aes sse", True), ("old", "flags : fpu sse", False)):
        (tmp_path / name).write_text(f"processor : 0\n{line}\n")
        assert has_fast_aes(tmp_path / name) is has
    assert not has_fast_aes(tmp_path / "nowhere")
