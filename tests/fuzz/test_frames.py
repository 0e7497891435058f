"""Damaged frames on a sealed link: none opens, and none raises anything but our own error.

LLCG_FUZZ_INPUTS sets how many are tried (5,000 in `make test`); the trial of 100,000 is marked full.
"""

import os
import random
from collections import Counter

import pytest
import torch

from llcg_dist.comm.frame import HEADER_BYTES, SEAL_BYTES, Header, Label, SealError
from llcg_dist.comm.ledger import Kind
from tests.helpers.mutate import mutate_bytes
from tests.helpers.sessions import received, sealed, two_ends

AMOUNTS = [int(os.environ.get("LLCG_FUZZ_INPUTS", 5000)), pytest.param(100_000, marks=pytest.mark.full)]
CAPACITY = 400


@pytest.mark.parametrize("amount", AMOUNTS)
def test_no_damaged_frame_opens(amount: int) -> None:
    """Damaged, replayed, early, of another link, of another start, or noise; between them genuine ones, which open."""
    chance, refused = random.Random(0), Counter[str]()
    server, machine = two_ends(machine=1)
    _, other = two_ends(machine=2)
    _, restarted = two_ends(machine=1)
    buffer = torch.zeros(SEAL_BYTES + CAPACITY, dtype=torch.uint8)
    replayed = [bytes(sealed(machine, b"before"))]
    server.open(received(replayed[0], buffer))
    for number in range(amount):
        content = chance.randbytes(chance.randrange(CAPACITY + 1))
        genuine = bytes(sealed(machine, content, Label(Kind.PARAMETERS, number)))
        kinds = {
            "damaged": mutate_bytes(chance, genuine),
            "replayed": chance.choice(replayed),
            "swapped": bytes(sealed(other, content)),
            "of another start": bytes(sealed(restarted, content)),
            "spliced": genuine[:HEADER_BYTES] + replayed[-1][HEADER_BYTES:],
            "noise": chance.randbytes(chance.randrange(2 * SEAL_BYTES)),
        }
        kind = chance.choices(list(kinds), weights=[20, 1, 1, 1, 1, 1])[0]
        forged = kinds[kind][: SEAL_BYTES + CAPACITY]  # our sender never sends more than fits
        arrived = received(forged, buffer)
        # Judged by the memory: behind a short message lie bytes of the one before, perhaps those that were cut off.
        if arrived[: len(genuine)] != genuine:
            with pytest.raises(SealError, match="^a message from rank 1 is refused: "):
                server.open(arrived)
            refused[kind] += 1
        header = server.open(received(genuine, buffer))
        assert buffer[HEADER_BYTES:][: header.length].numpy().tobytes() == content
        replayed = [*replayed[-50:], genuine]
    assert refused.total() > 0.9 * amount
    assert set(refused) == set(kinds)


@pytest.mark.parametrize("amount", AMOUNTS)
def test_any_header_is_read_or_is_none(amount: int) -> None:
    chance, machine = random.Random(1), two_ends()[1]
    genuine = bytes(sealed(machine, b""))[:HEADER_BYTES]
    for _ in range(amount):
        damaged = mutate_bytes(chance, genuine)[:HEADER_BYTES].ljust(HEADER_BYTES, b"\0")
        header = Header.unpack(damaged)
        assert header is None or header.pack() == damaged
