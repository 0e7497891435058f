"""What does cluster.on_loss=go_on cost where nobody fails, and how soon is a killed machine back? Real jobs in turns:

python -m bench.go_on [--repeats 5]
"""

import argparse
import os
import signal
import tempfile
import time
from pathlib import Path

from tests.helpers.jobs import finish, ranks_of, start_llcg, wait_for_rounds, wait_until
from tests.helpers.run_files import rows

from bench.harness import Claim, Spread, publish, ratio, table
from bench.jobs import Job, cut, train

SETTINGS = [
    "dataset.nodes=20000", "dataset.features=64", "model.hidden=64", "train.local_batch_size=256", "algorithm=llcg",
    "algorithm.K=8", "algorithm.rho=1", "num_rounds=40", "evaluate.every=0", "logger=none",
]  # fmt: skip
MACHINES = (2, 8)
WAYS = ("fail", "go_on")
KILLED_PART, LONG = 1, "num_rounds=2000"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    with tempfile.TemporaryDirectory(prefix="llcg-bench-") as folder:
        base = [*SETTINGS, f"partition.root={folder}/parts"]
        jobs: dict[tuple[int, str], list[Job]] = {(machines, way): [] for machines in MACHINES for way in WAYS}
        returns: dict[int, list[tuple[float, int]]] = {machines: [] for machines in MACHINES}
        for machines in MACHINES:
            cut([*base, f"cluster.num_machines={machines}"])
        for repeat in range(repeats):
            for machines, way in jobs:
                settings = [*base, f"cluster.num_machines={machines}", f"cluster.on_loss={way}"]
                jobs[machines, way].append(train(Path(folder, f"{machines}-{way}-{repeat}"), settings))
            for machines, found in returns.items():
                settings = [*base, LONG, f"cluster.num_machines={machines}", "cluster.on_loss=go_on"]
                found.append(until_back(Path(folder, f"{machines}-killed-{repeat}"), settings))
        report(jobs, returns)


def until_back(run_dir: Path, settings: list[str]) -> tuple[float, int]:
    """A machine is killed: seconds until a round with it in its place is recorded, and rounds of the others before."""
    job = start_llcg("train", *settings, f"run_dir={run_dir}")
    try:
        wait_for_rounds(run_dir, 5, job)
        os.kill(ranks_of(job)[1 + KILLED_PART], signal.SIGKILL)
        died = time.monotonic()
        wait_until(lambda: any(KILLED_PART in row.get("returned", []) for row in rows(run_dir)), job)
        seconds = time.monotonic() - died
    finally:
        job.terminate()
        finish(job)
    return seconds, sum(KILLED_PART in row.get("absent", []) for row in rows(run_dir))


def report(jobs: dict[tuple[int, str], list[Job]], returns: dict[int, list[tuple[float, int]]]) -> None:
    rounds = {cell: [job.seconds_per_round() for job in of] for cell, of in jobs.items()}
    claims = [
        Claim(
            f"a round of {machines} machines with on_loss=go_on, against fail",
            ratio(rounds[machines, "go_on"], rounds[machines, "fail"]),
            at_most=1.03,
        )
        for machines in MACHINES
    ]
    for machines, found in returns.items():
        what = f"{machines} machines: seconds until a killed one is back"
        claims.append(Claim(what, Spread.of([seconds for seconds, _ in found]), at_most=15))
        meanwhile = Spread.of([float(number) for _, number in found])
        claims.append(Claim(f"{machines} machines: rounds of the others meanwhile", meanwhile, at_least=1))
    cells = [
        [str(machines), way, f"{1e3 * Spread.of(values).median:.1f}"] for (machines, way), values in rounds.items()
    ]
    named = {f"{machines} machines, {way}": values for (machines, way), values in rounds.items()}
    publish("go_on", table(["machines", "on_loss", "ms a round"], cells), claims, named)


if __name__ == "__main__":
    main()
