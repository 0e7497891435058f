"""What the ranks of a test run: several jobs, one after the other, in the same processes.

    torchrun --nproc-per-node=3 several.py jobs.json

jobs.json is a list of jobs, a job is a list of overrides, or {"rank": overrides} where ranks differ. Every rank notes
the files that it opens in <run_dir>.opened.<rank>.json.
"""

import json
import os
import sys
from pathlib import Path

import torch

from llcg_dist.algorithms import build_algorithm
from llcg_dist.comm.ledger import Ledger
from llcg_dist.comm.torch_dist import Cluster
from llcg_dist.config.compose import load_config
from llcg_dist.job.process import Rank
from llcg_dist.job.run import take_part

opened: set[str] = set()


def note_opened(event: str, arguments: tuple) -> None:
    if event == "open" and isinstance(arguments[0], (str, os.PathLike)):
        opened.add(os.path.abspath(arguments[0]))


def main() -> None:
    jobs = json.loads(Path(sys.argv[1]).read_text())
    rank = os.environ["RANK"]
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    cluster = Cluster("gloo", 60, Ledger(frozenset()))
    sys.addaudithook(note_opened)
    for job in jobs:
        overrides = job if isinstance(job, list) else job[rank]
        opened.clear()
        config = load_config(overrides)
        algorithm = build_algorithm(config)
        cluster.ledger = Ledger(algorithm.allowed_messages)
        take_part(config, algorithm, cluster, Rank())
        with open(f"{config.run_dir}.opened.{rank}.json", "w") as file:
            json.dump(sorted(opened), file)
    cluster.close()


if __name__ == "__main__":
    main()
