"""Several jobs, one after the other, in the same processes of a server and two machines:

    python -m tests.helpers.ranks.several jobs.json

jobs.json is a list of {"overrides": [...], "leak": NAME or null}; overrides may be {"RANK": [...]} where ranks differ.
Every rank notes the files that it opened in RUN_DIR.opened.RANK.json, and with what it has sealed messages so far in
RUN_DIR.sealed.RANK.json; rank 0's exit codes go to jobs.json.codes. A leak may also be an attack on sealed messages
(tests/helpers/ranks/tampering.py). The ranks are torchrun's, forked from a process that has imported what they need.
"""

import gc
import json
import multiprocessing
import os
import signal
import sys
from pathlib import Path

from torch.distributed.launcher.api import LaunchConfig, elastic_launch

RANKS = 3


def run_jobs(file: str) -> list[int]:
    """What a rank does; the exit codes of its jobs."""
    from llcg_dist import train
    from tests.helpers.ranks import tampering
    from tests.helpers.ranks.leaks import LEAKS, before_local_steps

    attacks = LEAKS | tampering.TAMPERING
    rank, codes = os.environ["RANK"], []
    opened: set[str] = set()

    def note_opened(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open" and isinstance(arguments[0], str | os.PathLike):
            opened.add(os.path.abspath(arguments[0]))

    sys.addaudithook(note_opened)
    for job in json.loads(Path(file).read_text()):
        overrides = job["overrides"] if isinstance(job["overrides"], list) else job["overrides"][rank]
        opened.clear()
        before_local_steps(attacks[job["leak"]])
        codes.append(train.main(overrides))
        gc.collect()  # closes the connections of a job that failed, as the end of the process would
        run_dir = next(word.removeprefix("run_dir=") for word in overrides if word.startswith("run_dir="))
        Path(f"{run_dir}.opened.{rank}.json").write_text(json.dumps(sorted(opened)))
        sealed = {"used": sorted(tampering.used), "repeated": tampering.repeated}
        Path(f"{run_dir}.sealed.{rank}.json").write_text(json.dumps(sealed))
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a job leaves it ignored, and torchrun ends its ranks by it
    return codes


def main(file: str) -> None:
    multiprocessing.set_start_method("forkserver")
    multiprocessing.get_context("forkserver").set_forkserver_preload(["llcg_dist.train"])
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=RANKS,
        run_id="several",
        rdzv_backend="c10d",
        rdzv_endpoint="127.0.0.1:0",
        local_addr="127.0.0.1",
        max_restarts=0,
        start_method="forkserver",
    )
    codes = elastic_launch(config, run_jobs)(file)
    Path(f"{file}.codes").write_text(json.dumps(codes[0]))


if __name__ == "__main__":
    main(sys.argv[1])
