"""What the rendezvous decodes: states of a rendezvous, and nothing that runs."""

import os
import pickle
import resource
from base64 import b64encode
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import torch.distributed as dist
from torch.distributed.elastic.rendezvous import RendezvousStateError
from torch.distributed.elastic.rendezvous.dynamic_rendezvous import _NodeDesc, _RendezvousState

from llcg_dist.cli.launch.rendezvous import Backend, require_state


class Payload:
    """What an attacker pickles: unpickling it makes a folder."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self._path),)


def full_state() -> _RendezvousState:
    """A state with everything that one can hold."""
    node, other = _NodeDesc("10.0.0.1", 5, 0), _NodeDesc("10.0.0.2", 6, 1)
    state = _RendezvousState()
    state.round, state.complete, state.closed = 3, True, False
    state.deadline = datetime.now(UTC) + timedelta(seconds=4)
    state.participants, state.wait_list, state.redundancy_list = {node: 0}, {other}, {other}
    state.last_heartbeats = {node: datetime.now(UTC), other: datetime.now()}
    return state


@pytest.mark.parametrize("protocol", [4, 5])  # Python's default up to 3.13, and since
@pytest.mark.parametrize("state", [_RendezvousState(), full_state()], ids=["empty", "full"])
def test_a_state_is_read(state: _RendezvousState, protocol: int) -> None:
    require_state(pickle.dumps(state, protocol))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("inside", [False, True], ids=["alone", "inside a state"])
def test_nothing_else_runs(tmp_path: Path, protocol: int, inside: bool) -> None:
    payload: Any = Payload(tmp_path / "made")
    if inside:
        state = full_state()
        state.participants = payload
        payload = state
    pickled = pickle.dumps(payload, protocol)
    store = dist.HashStore()
    store.set("torch.rendezvous.job", b64encode(pickled).decode())
    with pytest.raises(RendezvousStateError, match="no state of its rendezvous"):
        Backend(store, "job").get_state()
    assert not (tmp_path / "made").exists()
    pickle.loads(pickled)  # the payload works
    assert (tmp_path / "made").exists()


@pytest.mark.parametrize(
    "value", [b"", b".", b"\x80", pickle.dumps({1, 2}), pickle.dumps(_NodeDesc("a", 1, 2)), b"cos\n"]
)
def test_what_is_no_state(value: bytes) -> None:
    with pytest.raises(RendezvousStateError):
        require_state(value)


def test_a_pickle_that_asks_for_memory_is_refused() -> None:
    """A memo of two billion places; 4 GB of bytes."""
    good = pickle.dumps(full_state(), 4)
    for wish in (b"r\xff\xff\xff\x7f", b"\x96\0\0\0\0\1\0\0\0", b"\x8e\0\0\0\0\1\0\0\0"):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with pytest.raises(RendezvousStateError):
            require_state(good[:2] + b"N" + wish + good[2:])
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # KiB


def test_the_backend_reads_what_it_writes() -> None:
    store = dist.HashStore()
    backend = Backend(store, "job")
    assert backend.get_state() is None
    bits = pickle.dumps(full_state())
    assert backend.set_state(bits) == (bits, b64encode(bits), True)
    assert backend.get_state() == (bits, b64encode(bits))
    store.set("torch.rendezvous.job", "not base64!")
    with pytest.raises(RendezvousStateError):
        backend.get_state()
