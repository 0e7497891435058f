"""What does cluster.on_loss=go_on cost where nobody fails? Real jobs, interleaved:

python -m bench.go_on [--repeats 5]
"""

import argparse
import tempfile
from pathlib import Path

from bench.harness import Claim, Spread, publish, ratio, table
from bench.jobs import Job, cut, train

SETTINGS = [
    "dataset.nodes=20000", "dataset.features=64", "model.hidden=64", "train.local_batch_size=256", "algorithm=llcg",
    "algorithm.K=8", "algorithm.rho=1", "num_rounds=40", "evaluate.every=0", "logger=none",
]  # fmt: skip
MACHINES = (2, 8)
WAYS = ("fail", "go_on")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    with tempfile.TemporaryDirectory(prefix="llcg-bench-") as folder:
        base = [*SETTINGS, f"partition.root={folder}/parts"]
        jobs: dict[tuple[int, str], list[Job]] = {(machines, way): [] for machines in MACHINES for way in WAYS}
        for machines in MACHINES:
            cut([*base, f"cluster.num_machines={machines}"])
        for repeat in range(repeats):
            for machines, way in jobs:
                settings = [*base, f"cluster.num_machines={machines}", f"cluster.on_loss={way}"]
                jobs[machines, way].append(train(Path(folder, f"{machines}-{way}-{repeat}"), settings))
        report(jobs)


def report(jobs: dict[tuple[int, str], list[Job]]) -> None:
    rounds = {cell: [job.seconds_per_round() for job in of] for cell, of in jobs.items()}
    claims = [
        Claim(
            f"a round of {machines} machines with on_loss=go_on, against fail",
            ratio(rounds[machines, "go_on"], rounds[machines, "fail"]),
            at_most=1.03,
        )
        for machines in MACHINES
    ]
    rows = [[str(machines), way, f"{1e3 * Spread.of(values).median:.1f}"] for (machines, way), values in rounds.items()]
    named = {f"{machines} machines, {way}": values for (machines, way), values in rounds.items()}
    publish("go_on", table(["machines", "on_loss", "ms a round"], rows), claims, named)


if __name__ == "__main__":
    main()
