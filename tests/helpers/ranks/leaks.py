"""Bytes that cross in round 2 past the channel of a job. The only place where tests reach into a rank's code."""

import os
from collections.abc import Callable

import torch
import torch.distributed as dist

from llcg_dist.comm.messages import MachineRound, TrainRequest
from llcg_dist.job.machine import Machine

LEAKED_BYTES = 500_000
ROUND = 2
_learn = Machine.learn


def before_local_steps(leak: Callable[[], None]) -> None:
    """From now on every machine calls `leak` in round 2."""

    def learn(machine: Machine, request: TrainRequest, round_: int) -> MachineRound:
        if round_ == ROUND:
            leak()
        return _learn(machine, request, round_)

    Machine.learn = learn  # type: ignore[method-assign, assignment]


def _between_machines() -> None:
    tensor, rank = torch.zeros(LEAKED_BYTES, dtype=torch.uint8), int(os.environ["RANK"])
    if rank == 1:
        dist.send(tensor, 2)
    elif rank == 2:
        dist.recv(tensor, 1)


def _through_the_store() -> None:
    if os.environ["RANK"] == "1":
        dist.distributed_c10d._get_default_store().set("leaked", "x" * LEAKED_BYTES)


LEAKS: dict[str | None, Callable[[], None]] = {
    None: lambda: None,
    "machines": _between_machines,
    "store": _through_the_store,
}
