"""What does a machine that is lost for good cost, and what does a server give back that stands in for it?

    python -m studies.losses --data FOLDER [--seeds 5] [--workers 2] [--out runs/losses] [--graphs NAME ...]

The settings of studies/accuracy.py, eight machines; one or two of them are gone after a third of the rounds
(cluster.script). FOLDER holds Amazon/. On loopback; finished runs are kept (studies/pool.py).
"""

import argparse
import json
from pathlib import Path

import numpy as np
from bench.harness import Claim, Spread, publish, table

from llcg_dist.config.compose import quoted_override
from studies.accuracy_grid import COMMON, FIRST_SEED, FOLDERS, FOUR_STEPS, GRAPHS
from studies.pool import run_all

MACHINES, ROUNDS = 8, 25
METHODS = {
    "llcg (S = 4), stand-in": FOUR_STEPS,
    "llcg (S = 4), no stand-in": [*FOUR_STEPS, "cluster.stand_in=false"],
    "psgd_pa, no stand-in": ["algorithm=psgd_pa", "cluster.stand_in=false"],
}
STANDS_IN = "llcg (S = 4), stand-in"
LOST = (0, 1, 2)
"""How many machines are lost."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("runs/losses"))
    parser.add_argument("--graphs", nargs="*", choices=GRAPHS, default=["computers", "homophily 0.5"])
    arguments = parser.parse_args()
    seeds = range(FIRST_SEED, FIRST_SEED + arguments.seeds)
    # Where nobody is lost nobody stands in: one run for both ways.
    cells = {
        (graph, method, lost, seed): arguments.out
        / f"{graph}/{method if lost else method.split(',')[0]}/{lost}-{seed}".replace(" ", "_")
        for seed in seeds
        for graph in arguments.graphs
        for lost in LOST
        for method in METHODS
    }
    runs = {folder: settings(arguments.data, arguments.out, *cell) for cell, folder in cells.items()}
    run_all(runs, arguments.workers)
    tests = {cell: final_score(folder) for cell, folder in cells.items()}
    rows, claims = [], list[Claim]()
    for graph in arguments.graphs:
        for method in METHODS:
            of = {lost: np.array([tests[graph, method, lost, seed] for seed in seeds]) for lost in LOST}
            cost = {lost: of[0] - of[lost] for lost in LOST}
            costs = [mean_std(cost[lost]) for lost in LOST[1:]]
            rows.append([graph, method, *(mean_std(of[lost]) for lost in LOST), *costs])
            if method == STANDS_IN:
                spread = Spread.of([float(cost[1].mean())])
                claims.append(Claim(f"{graph}: one of eight lost, points of test score", spread, at_most=0.5))
    head = ["graph", "method", *(f"test %, {lost} lost" for lost in LOST), "cost of 1", "cost of 2"]
    publish("losses", table(head, rows), claims)


def settings(data: Path, out: Path, graph: str, method: str, lost: int, seed: int) -> list[str]:
    root = [quoted_override("dataset.root", str(data / FOLDERS[graph]))] if graph in FOLDERS else []
    parts = quoted_override("partition.root", str(out / "partitions" / graph.replace(" ", "_")))
    going_on = ["cluster.on_loss=go_on", quoted_override("cluster.script", str(script(out, lost, seed)))]
    rounds = [f"num_rounds={ROUNDS}", f"evaluate.every={ROUNDS}", "evaluate.both_statistics=false"]
    return [*COMMON, *rounds, *GRAPHS[graph], *root, *METHODS[method], *going_on, f"seed={seed}", parts]


def final_score(folder: Path) -> float:
    """After the last round, in %: what is lost by then."""
    return 100 * float(json.loads((folder / "summary.json").read_text())["final_test_score"])


def script(out: Path, lost: int, seed: int) -> Path:
    """The records of a run that lost so many machines, other ones with every seed, after a third of its rounds."""
    path = out / "scripts" / f"{lost}-{seed}.jsonl"
    parts = sorted((seed + 3 * number) % MACHINES for number in range(lost))
    rows = [{"round": r, "absent": parts if 3 * r > ROUNDS else []} for r in range(1, ROUNDS + 1)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def mean_std(values: np.ndarray) -> str:
    return f"{np.mean(values):.2f} ± {np.std(values, ddof=min(1, len(values) - 1)):.2f}"


if __name__ == "__main__":
    main()
