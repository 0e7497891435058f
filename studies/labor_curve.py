"""LABOR sampling reaches the scores of neighbour sampling, round for round:

    python -m studies.labor_curve [--seeds 30] [--workers 2] [--out runs/labor_curve]

The default settings on a graph with 40 neighbours a node, so that a fan-out of 10 leaves most of them out; on loopback.
Seeds differ by about a point, so five of them cannot tell half a point. Finished runs are kept (studies/pool.py).
"""

import argparse
import json
import statistics
from pathlib import Path

from bench.harness import Claim, Spread, publish, table

from studies.pool import run_all
from studies.seeds import mean_std

SETTINGS = ["dataset.degree=40", "logger=none"]
METHODS = ("neighbor", "labor")
SHOWN = (1, 2, 4, 8, 12, 16, 20)
"""The rounds whose scores are compared."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("runs/labor_curve"))
    arguments = parser.parse_args()
    folders = {method: [arguments.out / f"{method}-{seed}" for seed in range(arguments.seeds)] for method in METHODS}
    runs = {
        folder: [*SETTINGS, f"sampling.method={method}", f"seed={seed}"]
        for method, of_method in folders.items()
        for seed, folder in enumerate(of_method)
    }
    run_all(runs, arguments.workers)
    curves = {method: [curve(folder) for folder in of_method] for method, of_method in folders.items()}
    rows, apart = [], []
    for round_ in SHOWN:
        neighbor, labor = ([scores[round_ - 1] for scores in curves[method]] for method in curves)
        difference = statistics.mean(labor) - statistics.mean(neighbor)
        apart.append(abs(difference) / statistics.stdev(neighbor))
        rows.append([round_, mean_std(neighbor), mean_std(labor), f"{difference:+.2f}", f"{apart[-1]:.2f}"])
    head = [
        "round",
        "val %, neighbour",
        "val %, LABOR",
        "difference of the means",
        "in standard deviations of neighbour",
    ]
    worst = Spread.of([max(apart)])
    claim = Claim("LABOR's mean from neighbour's in the worst round, in standard deviations", worst, at_most=1)
    publish("labor_curve", table(head, rows), [claim])


def curve(run_dir: Path) -> list[float]:
    """Validation score by round, in percent."""
    return [100 * json.loads(line)["val_score"] for line in (run_dir / "metrics.jsonl").read_text().splitlines()]


if __name__ == "__main__":
    main()
