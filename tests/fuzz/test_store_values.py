"""Damaged values in a job's store: none is taken for authentic, and none raises anything that nobody expects.

LLCG_FUZZ_INPUTS sets how many are tried (5,000 in `make test`); the trial of 100,000 is marked full.
"""

import contextlib
import os
import pickle
import random
from base64 import b64encode
from datetime import UTC, datetime

import pytest
import torch.distributed as dist
from torch.distributed.elastic.rendezvous import RendezvousStateError
from torch.distributed.elastic.rendezvous.dynamic_rendezvous import _NodeDesc, _RendezvousState

from llcg_dist.cli.launch.rendezvous import require_state
from llcg_dist.comm.sealed_store import SealedStore
from tests.helpers.mutate import mutate_bytes

KEY, KEYS = bytes(range(32)), ["torch.rendezvous.job", "llcg/refused", "llcg/x/beat/1", "llcg/x/link/1/0/1"]
AMOUNTS = [int(os.environ.get("LLCG_FUZZ_INPUTS", 5000)), pytest.param(100_000, marks=pytest.mark.full)]


def a_state() -> bytes:
    node = _NodeDesc("10.0.0.1", 5, 0)
    state = _RendezvousState()
    state.participants, state.wait_list, state.last_heartbeats = (
        {node: 0},
        {node},
        {node: datetime(2024, 1, 1, tzinfo=UTC)},
    )
    return pickle.dumps(state)


@pytest.mark.parametrize("amount", AMOUNTS)
def test_no_damaged_value_is_authentic(amount: int) -> None:
    """A value is damaged, replaced by an older one, or by that of another key; every operation meets it."""
    beneath = dist.HashStore()
    writer = SealedStore(beneath, KEY)
    chance = random.Random(0)
    contents = [b64encode(a_state()), b"reason", b"17", chance.randbytes(60)]
    recorded: list[bytes] = []
    for key, content in zip(KEYS, contents, strict=True):
        writer.set(key, "earlier")
        recorded.append(beneath.get(key))
        writer.set(key, content)
    genuine = [beneath.get(key) for key in KEYS]
    seen = SealedStore(beneath, KEY)  # has read all of it before
    assert [seen.get(key) for key in KEYS] == contents
    for number in range(amount):
        place, other = chance.randrange(4), chance.randrange(1, 4)
        key = KEYS[place]
        kinds = [
            mutate_bytes(chance, genuine[place]),
            recorded[place],
            genuine[(place + other) % 4],
            chance.randbytes(45),
        ]
        forged = chance.choices(kinds, weights=[20, 1, 1, 1])[0]
        if forged == genuine[place]:
            continue
        fresh = SealedStore(beneath, KEY)
        beneath.set(key, forged)  # type: ignore[arg-type]
        if forged != recorded[place]:  # one who has seen nothing newer cannot tell an older value
            assert not fresh.check([key])
            assert fresh.compare_set(key, "x", "y") == b"x"
        operation = number % 3
        if operation == 0:
            assert seen.get(key) == contents[place]
        elif operation == 1:
            assert seen.check([key])
        else:
            assert seen.compare_set(key, "x", "y") == contents[place]
            assert seen.check([key])
        assert beneath.get(key) == genuine[place]  # put back


@pytest.mark.parametrize("amount", AMOUNTS)
def test_a_damaged_state_is_read_or_refused(amount: int) -> None:
    """Without seals, or from a host that has the key: what is unpickled may be a state, and names nothing else."""
    chance, good, refused = random.Random(0), a_state(), 0
    require_state(good)
    for _ in range(amount):
        damaged = mutate_bytes(chance, good)
        with contextlib.suppress(RendezvousStateError):
            require_state(damaged)
            continue
        refused += 1
    assert refused > amount / 4
