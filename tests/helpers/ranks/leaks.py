"""Bytes that cross in round 2 past the channel of a job. The only place where tests reach into a rank's code."""

import os
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from llcg_dist.comm.messages import Message
from llcg_dist.job.machine import Machine

LEAKED_BYTES = 500_000
ROUND = 2
_handle = Machine.handle


def before_local_steps(leak: Callable[[], None]) -> None:
    """From now on every machine calls `leak` in round 2."""

    def handle(machine: Machine, request: Message) -> Message | None:
        if request.round == ROUND:
            leak()
        return _handle(machine, request)

    Machine.handle = handle  # type: ignore[method-assign, assignment]


def _store() -> dist.TCPStore:
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    return dist.TCPStore(address, port, is_master=False, wait_for_workers=False, timeout=timedelta(seconds=30))


def _between_machines() -> None:
    tensor, rank = torch.zeros(LEAKED_BYTES, dtype=torch.uint8), int(os.environ["RANK"])
    group: Any = dist.ProcessGroupGloo(dist.PrefixStore("leak", _store()), rank - 1, 2, timedelta(seconds=30))
    work = group.send([tensor], 1, 0) if rank == 1 else group.recv([tensor], 0, 0)
    work.wait()
    _kept.append(group)  # so that its connection is still there when the sockets are read


_kept: list[object] = []


def _through_the_store() -> None:
    if os.environ["RANK"] == "1":
        store = _store()
        store.set("leaked", "x" * LEAKED_BYTES)
        _kept.append(store)


LEAKS: dict[str | None, Callable[[], None]] = {
    None: lambda: None,
    "machines": _between_machines,
    "store": _through_the_store,
}
