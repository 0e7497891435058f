"""LABOR sampling reaches the scores of neighbour sampling, round for round:

    python -m bench.labor_curve [--seeds 5] [--out runs/labor_curve]

The demo's settings on a graph with 40 neighbours a node, so that a fan-out of 10 leaves most of them out; on loopback.
Finished runs are kept and not repeated, so that an interrupted call can be continued.
"""

import argparse
import json
import statistics
from pathlib import Path

from bench.harness import Claim, Spread, publish, table
from bench.seeds import mean_std
from llcg_dist.config import load_config, quoted_override
from llcg_dist.process import Rank
from llcg_dist.train import run

SETTINGS = ["dataset.degree=40", "cluster.backend=loopback", "checkpoint.every=0", "logger=none"]
SHOWN = (1, 2, 4, 8, 12, 16, 20)
"""Rounds."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("runs/labor_curve"))
    arguments = parser.parse_args()
    curves = {
        method: [curve(arguments.out / f"{method}-{seed}", method, seed) for seed in range(arguments.seeds)]
        for method in ("neighbor", "labor")
    }
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
    claim = Claim("LABOR's mean from neighbour's, in standard deviations, over the rounds", Spread.of(apart), at_most=1)
    publish("labor_curve", table(head, rows), [claim])


def curve(run_dir: Path, method: str, seed: int) -> list[float]:
    """Validation score by round, in percent."""
    if not (run_dir / "summary.json").exists():
        given = [f"sampling.method={method}", f"seed={seed}", quoted_override("run_dir", str(run_dir))]
        run(load_config([*SETTINGS, *given]), Rank())
    return [100 * json.loads(line)["val_score"] for line in (run_dir / "metrics.jsonl").read_text().splitlines()]


if __name__ == "__main__":
    main()
