"""Does rounding what crosses cost accuracy? llcg with algorithm.exchange_dtype=float32, bfloat16 and int8, over seeds:

    python -m bench.exchange_accuracy --data FOLDER [--seeds 5] [--out runs/exchange_accuracy]

The synthetic graph with the settings of the demo, and Amazon-Computers (FOLDER/Amazon) with those of bench/accuracy.py.
All on loopback, which has the bits of real processes. Finished runs are kept and not repeated.
"""

import argparse
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from bench.accuracy import COMMON, GRAPHS, Job, train
from bench.harness import Claim, Spread, publish, ratio, table
from llcg_dist.cli.console import say

DTYPES = ("float32", "bfloat16", "int8")
CELLS = {
    "synthetic, 4 parts": ["cluster.backend=loopback", "checkpoint.every=0"],
    "Amazon-Computers, 8 parts": [*COMMON, *GRAPHS["computers"]],
}
MOST_BYTES, MOST_POINTS = 0.27, 0.3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("runs/exchange_accuracy"))
    arguments = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    found: dict[tuple[str, str], list[dict[str, Any]]] = {(cell, dtype): [] for cell in CELLS for dtype in DTYPES}
    for seed in range(arguments.seeds):  # seed by seed, so that a sweep that was stopped early compares like with like
        for cell, dtype in found:
            root = [f"dataset.root='{arguments.data / 'Amazon'}'"] if "Amazon" in cell else []
            settings = [*CELLS[cell], *root, "algorithm=llcg", f"algorithm.exchange_dtype={dtype}", f"seed={seed}"]
            job = Job("exchange", cell.split(",")[0], dtype, seed, settings)
            say(train(job, arguments.out))
            found[cell, dtype].append(json.loads((job.folder(arguments.out) / "summary.json").read_text()))
    publish("exchange_accuracy", scores(found), claims(found))


def scores(found: dict[tuple[str, str], list[dict[str, Any]]]) -> str:
    head = ["graph", "exchange_dtype", "final val %", "best val %", "test % at best val", "final val less float32's"]
    rows = []
    for (cell, dtype), runs in found.items():
        columns = [percent(runs, key) for key in ("final_val_score", "best_val_score", "test_score_at_best_val")]
        rows.append([cell, dtype, *map(with_spread, columns), with_spread(differences(found, cell, dtype), "+.2f")])
    return f"Mean ± standard deviation over {len(runs)} seeds.\n\n{table(head, rows)}"


def claims(found: dict[tuple[str, str], list[dict[str, Any]]]) -> list[Claim]:
    made = []
    for cell in CELLS:
        distance = abs(float(differences(found, cell, "int8").mean()))
        what = f"{cell}: int8 from float32, points of final validation score (of the means)"
        made.append(Claim(what, Spread.of([distance]), at_most=MOST_POINTS))
        sent = {dtype: [moved(run) for run in found[cell, dtype]] for dtype in DTYPES}
        what = f"{cell}: int8 / float32, bytes of models"
        made.append(Claim(what, ratio(sent["int8"], sent["float32"]), at_most=MOST_BYTES))
    return made


def percent(runs: list[dict[str, Any]], key: str) -> np.ndarray:
    return 100 * np.array([run[key] for run in runs])


def differences(found: dict[tuple[str, str], list[dict[str, Any]]], cell: str, dtype: str) -> np.ndarray:
    """In points, seed by seed."""
    return percent(found[cell, dtype], "final_val_score") - percent(found[cell, "float32"], "final_val_score")


def moved(run: dict[str, Any]) -> float:
    return run["mb_up_per_round"] + run["mb_down_per_round"]


def with_spread(values: np.ndarray, shape: str = ".2f") -> str:
    return f"{values.mean():{shape}} ± {values.std(ddof=min(1, len(values) - 1)):.2f}"


if __name__ == "__main__":
    main()
