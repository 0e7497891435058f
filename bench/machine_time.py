"""Figure 1's time per machine, on a host with fewer cores than machines: CPU seconds of a machine's own local steps.

    python -m bench.machine_time [overrides...]

All machines take turns in one process, so that none waits for a core, and records count CPU time: what a step costs
on a part of figure 1's graph, and what P machines with a core each would need for a pass over the training nodes.
"""

import argparse
import tempfile
from collections.abc import Sequence
from math import ceil
from pathlib import Path

from llcg_dist import train
from llcg_dist.config.compose import load_config
from llcg_dist.records.console import say
from llcg_dist.records.rows import read_rows

_STEPS, _BATCH, _NODES, _TRAINED = 8, 512, 120_000, 0.5
_GRAPH = [f"dataset.nodes={_NODES}", "dataset.features=256", f"dataset.train_fraction={_TRAINED}"]
_JOB = [
    "algorithm=psgd_pa",
    f"algorithm.K={_STEPS}",
    f"train.local_batch_size={_BATCH}",
    "num_rounds=3",
    "evaluate.every=0",
]
_QUIET = ["logger=none", "checkpoint.every=0"]


def main() -> None:
    overrides = argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_known_args()[1]
    say("| machines | CPU ms a step | steps a machine for one pass | CPU s of a pass |\n|---|---|---|---|")
    for machines in (1, 2, 4, 8):
        milliseconds = _milliseconds(machines, overrides)
        steps = ceil(_NODES * _TRAINED / machines / _BATCH)
        say(f"| {machines} | {milliseconds:.0f} | {steps} | {milliseconds * steps / 1000:.1f} |")


def _milliseconds(machines: int, overrides: Sequence[str]) -> float:
    """Of a step of the slowest machine, in the quickest round."""
    with tempfile.TemporaryDirectory() as folder:
        places = [f"cluster.num_machines={machines}", f"run_dir={folder}/run"]
        small = ["experiment=figures/small", "dataset=synthetic", *_GRAPH, *_JOB, *_QUIET]
        train.run(load_config([*small, *places, *overrides]), train.Rank())
        rows = read_rows(Path(folder) / "run", 3)
    return 1000 * min(max(row["cpu_local_by_part"]) for row in rows) / _STEPS


if __name__ == "__main__":
    main()
