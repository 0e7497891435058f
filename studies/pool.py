"""Many runs, a few at a time, on loopback, which has the bits of real processes."""

import contextlib
import json
import logging
import multiprocessing
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from llcg_dist.config.compose import load_config
from llcg_dist.errors import TrainingError
from llcg_dist.job.process import Rank
from llcg_dist.job.run_dir import RunState, inspect_run_dir
from llcg_dist.records.console import say
from llcg_dist.train import run

ENDED_FILE = "ended.json"
"""In the folder of a run that ended as it should: why."""


def run_all(runs: Mapping[Path, Sequence[str]], workers: int, may_end: bool = False) -> None:
    """Run directory -> overrides. Finished ones are kept and not repeated: an interrupted call can be continued.
    `may_end`: a run may also end with a TrainingError, whose message is kept in its place."""
    os.environ["OMP_NUM_THREADS"] = "1"
    # Fresh processes: a fork of one that has used torch may hang in its threads.
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        waiting = [pool.submit(_run, folder, settings, may_end) for folder, settings in runs.items()]
        for done, finished in enumerate(as_completed(waiting), start=1):
            say(f"{done}/{len(runs)}  {finished.result()}")


def _run(folder: Path, settings: Sequence[str], may_end: bool = False) -> Path:
    """Beside the records goes cost.json: seconds of CPU, with those of METIS."""
    config = load_config([*settings, "cluster.backend=loopback", "checkpoint.every=0", f"run_dir='{folder}'"])
    if not (folder / ENDED_FILE).exists() and inspect_run_dir(config, folder) is not RunState.FINISHED:
        logging.getLogger().handlers.clear()  # the log of the run before
        before = sum(os.times()[:4])
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
            try:
                run(config, Rank())
            except TrainingError as error:
                if not may_end:
                    raise
                (folder / ENDED_FILE).write_text(json.dumps({"message": str(error)}))
        (folder / "cost.json").write_text(json.dumps({"cpu_seconds": sum(os.times()[:4]) - before}))
    return folder
