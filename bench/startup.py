"""How long from the command to the first local step? Real jobs with a server and eight machines, interleaved:

    python -m bench.startup [--repeats 3]

- fork: ranks come from one process that has imported everything (cluster.start=auto without a GPU);
- spawn: each rank imports for itself.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.harness import Claim, Spread, publish, ratio, table
from bench.jobs import cut, train

MACHINES = 8
SETTINGS = [
    "algorithm=psgd_pa", "dataset.nodes=20000", f"cluster.num_machines={MACHINES}", "num_rounds=2", "algorithm.K=2",
    "evaluate.every=0", "logger=none",
]  # fmt: skip

_IMPORT = """
import time
started = time.perf_counter()
import llcg_dist.train
from llcg_dist.models import registry
from llcg_dist.sampling import compiled
registry.import_all()
compiled.load()
print(time.perf_counter() - started)
print(next(line for line in open("/proc/self/status") if line.startswith("VmRSS")).split()[1])
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    first_step: dict[str, list[float]] = {"fork": [], "spawn": []}
    with tempfile.TemporaryDirectory(prefix="llcg-bench-") as folder:
        base = [*SETTINGS, f"partition.root={folder}/parts"]
        cut(base)
        for repeat in range(repeats):
            for way, seconds in first_step.items():
                job = train(Path(folder, f"{way}{repeat}"), [*base, f"cluster.start={way}"])
                seconds.append(max(job.begins(part)[0] for part in range(MACHINES)) - job.command_at)
    imports = [_import() for _ in range(repeats)]
    claims = [Claim("ranks forked, against each importing for itself", ratio(first_step["fork"], first_step["spawn"]))]
    rows = [[f"cluster.start={way}", Spread.of(seconds)] for way, seconds in first_step.items()]
    text = table(["1 server, 8 machines, two cores", "seconds from the command to the last machine's first step"], rows)
    seconds, megabytes = (statistics.median(column) for column in zip(*imports, strict=True))
    text += f"\n\nA process that imports everything for itself takes {seconds:.1f} s and {megabytes:.0f} MB to do so."
    publish("startup", text, claims, first_step | {"import_seconds": seconds, "import_mb": megabytes})


def _import() -> tuple[float, float]:
    found = subprocess.run([sys.executable, "-c", _IMPORT], check=True, capture_output=True, text=True).stdout.split()
    return float(found[0]), int(found[1]) / 1024


if __name__ == "__main__":
    main()
