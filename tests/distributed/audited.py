"""What the ranks of a test run: several audited jobs, one after the other, each in a process group of its own.

    torchrun --nproc-per-node=3 audited.py jobs.json

jobs.json is a list of {"overrides": [...], "leak": ...}; a leak sends a tensor past the channel while round 2 trains.
Rank 0 writes the exit codes of the jobs to jobs.json.codes.
"""

import json
import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist

from llcg_dist import train
from llcg_dist.job.machine import Machine

RANK = int(os.environ.get("RANK", 0))
LEAKED = 500_000
learn = Machine.learn


def between_machines() -> None:
    tensor = torch.zeros(LEAKED, dtype=torch.uint8)
    if RANK == 1:
        dist.send(tensor, 2)
    elif RANK == 2:
        dist.recv(tensor, 1)


def through_the_store() -> None:
    if RANK == 1:
        dist.distributed_c10d._get_default_store().set("leaked", "x" * LEAKED)


LEAKS = {"machines": between_machines, "store": through_the_store}


def main() -> None:
    codes = []
    for job in json.loads(Path(sys.argv[1]).read_text()):
        leak = LEAKS.get(job.get("leak"), lambda: None)

        def leaky(machine: Machine, order: object, round_: int, leak: object = leak) -> object:
            if round_ == 2:
                leak()  # type: ignore[operator]
            return learn(machine, order, round_)

        Machine.learn = leaky  # type: ignore[assignment, method-assign]
        codes.append(train.main(job["overrides"]))
    if RANK == 0:
        Path(f"{sys.argv[1]}.codes").write_text(json.dumps(codes))


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)
