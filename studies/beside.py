"""Is correction beside the machines as good as correction after them, and sooner?

    python -m studies.beside --data FOLDER [--tune] [--seeds 5] [--workers 2] [--out runs/beside] [--graphs NAME ...]

The graphs and settings of studies/accuracy.py with 32 local steps a round, so that there is something to fill:
llcg with S = 4 after and with S = fill beside, and single. FOLDER holds Amazon/, Planetoid/ and Hetero/. On
loopback; finished runs are kept (studies/pool.py). `--tune` compares weights of the server's model on seed 0, which
judges nothing, and publishes nothing.

Time is cluster time with evaluation in a process of its own: the longest of the machines' local CPU seconds and of
the server's steps beside them, and the correction that they wait for. single computes everything itself.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from bench.harness import Claim, Spread, publish, table

from llcg_dist.config.compose import quoted_override
from llcg_dist.records.console import say
from studies.accuracy_grid import COMMON, FIRST_SEED, FOLDERS, FOUR_STEPS, GRAPHS
from studies.pool import run_all
from studies.timed_runs import TimedRun as Run

SINGLE, AFTER, FILL = "single", "after, S = 4", "beside, S = fill"
METHODS = {
    SINGLE: ["algorithm=single"],
    AFTER: FOUR_STEPS,
    FILL: ["algorithm=llcg", "algorithm.correction=beside", "algorithm.S=fill"],
}
TUNED = {SINGLE: METHODS[SINGLE], AFTER: METHODS[AFTER]} | {
    f"{FILL}, weight {weight}": [*METHODS[FILL], f"algorithm.server_weight={weight}"]
    for weight in (0.25, 0.5, 0.75, 0.9)
}
TUNING_SEEDS = range(1)
LOCAL_STEPS = 32
NEARLY = 0.97
"""The share of single's best validation score whose time is taken."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("runs/beside"))
    parser.add_argument("--graphs", nargs="*", choices=GRAPHS, default=list(GRAPHS))
    parser.add_argument("--tune", action="store_true")
    arguments = parser.parse_args()
    methods = TUNED if arguments.tune else METHODS
    seeds = TUNING_SEEDS if arguments.tune else range(FIRST_SEED, FIRST_SEED + arguments.seeds)
    folders = {
        (graph, method, seed): arguments.out / graph.replace(" ", "_") / method.replace(" ", "") / str(seed)
        for seed in seeds
        for graph in arguments.graphs
        for method in methods
    }
    runs = {
        folder: settings(arguments.data, arguments.out, graph, methods[method], seed)
        for (graph, method, seed), folder in folders.items()
    }
    run_all(runs, arguments.workers)
    rows, claims = [], list[Claim]()
    for graph in arguments.graphs:
        found = {method: [Run(folders[graph, method, seed]) for seed in seeds] for method in methods}
        targets = [NEARLY * run.best for run in found[SINGLE]]
        rows += [[graph, method, *columns(of, targets)] for method, of in found.items()]
        claims += [] if arguments.tune else claims_of(graph, found, targets)
    head = [
        "graph",
        "correction",
        "test %",
        "best - final val %",
        "S in the last round",
        "cluster s",
        "s to 97 % of single",
    ]
    if arguments.tune:
        say(table(head, rows))
    else:
        publish("beside", table(head, rows), claims)


def settings(data: Path, out: Path, graph: str, method: Sequence[str], seed: int) -> list[str]:
    root = [quoted_override("dataset.root", str(data / FOLDERS[graph]))] if graph in FOLDERS else []
    parts = quoted_override("partition.root", str(out / "partitions" / graph.replace(" ", "_")))
    return [*COMMON, f"algorithm.K={LOCAL_STEPS}", *GRAPHS[graph], *root, *method, f"seed={seed}", parts]


def columns(runs: list[Run], targets: list[float]) -> list[str]:
    steps = [str(row["S"]) for row in {run.rows[-1].get("S"): run.rows[-1] for run in runs}.values() if "S" in row]
    times = np.array([run.seconds_to(target) for run, target in zip(runs, targets, strict=True)])
    never = int(np.isinf(times).sum())
    median = f"{np.median(times):.2f}" if never < len(times) / 2 else "never"
    return [
        mean_std([run.test for run in runs]),
        mean_std([run.best - run.final for run in runs]),
        " ".join(sorted(steps, key=int)) or "–",
        f"{np.mean([run.clock()[-1] for run in runs]):.2f}",
        median + (f" ({never} of {len(times)} never)" if never else ""),
    ]


def claims_of(graph: str, runs: dict[str, list[Run]], targets: list[float]) -> list[Claim]:
    apart = np.array([fill.test - after.test for fill, after in zip(runs[FILL], runs[AFTER], strict=True)])
    error = apart.std(ddof=1) / len(apart) ** 0.5 if len(apart) > 1 else 0.0
    unsteady = float(np.mean([run.best - run.final for run in runs[FILL]]))
    times = {name: [run.seconds_to(t) for run, t in zip(runs[name], targets, strict=True)] for name in (FILL, AFTER)}
    sooner = float(np.median(times[FILL])) / float(np.median(times[AFTER]))
    above = Spread.of([float(apart.mean() + 2 * error)])
    return [
        Claim(f"{graph}: fill - after, points of test score + 2 standard errors", above, at_least=0),
        Claim(f"{graph}: best - final of fill, points", Spread.of([unsteady]), at_most=0.5),
        Claim(f"{graph}: cluster time to 97 % of single, fill / after", Spread.of([sooner]), at_most=1),
    ]  # fmt: skip


def mean_std(values: list[float]) -> str:
    return f"{np.mean(values):.2f} ± {np.std(values, ddof=min(1, len(values) - 1)):.2f}"


if __name__ == "__main__":
    main()
