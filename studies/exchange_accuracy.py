"""Does rounding what crosses cost accuracy? llcg with algorithm.exchange_dtype=float32, bfloat16 and int8, over seeds:

    python -m studies.exchange_accuracy --data FOLDER [--seeds 5] [--workers 2] [--out runs/exchange_accuracy]

The synthetic graph with the default settings, and Amazon-Computers (FOLDER/Amazon) with those of studies/accuracy.py.
All on loopback, which has the bits of real processes. Finished runs are kept (studies/pool.py).
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from bench.harness import Claim, Spread, publish, ratio, table

from llcg_dist.config.compose import quoted_override
from studies.accuracy_grid import COMMON, FOLDERS, GRAPHS
from studies.pool import run_all

DTYPES = ("float32", "bfloat16", "int8")
COMPUTERS = "Amazon-Computers, 8 parts"
CELLS = {
    "synthetic, 4 parts": ["logger=none"],
    COMPUTERS: [*COMMON, *GRAPHS["computers"]],
}
MOST_BYTES, MOST_POINTS = 0.27, 0.3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("runs/exchange_accuracy"))
    arguments = parser.parse_args()
    root = {COMPUTERS: [quoted_override("dataset.root", str(arguments.data / FOLDERS["computers"]))]}
    folders = {
        (cell, dtype): [arguments.out / f"{cell.split(',')[0]}-{dtype}-{seed}" for seed in range(arguments.seeds)]
        for cell in CELLS
        for dtype in DTYPES
    }
    runs = {
        folder: [
            *CELLS[cell], *root.get(cell, []), "algorithm=llcg", f"algorithm.exchange_dtype={dtype}", f"seed={seed}",
            quoted_override("partition.root", str(arguments.out / "partitions")),
        ]
        for (cell, dtype), of_cell in folders.items()
        for seed, folder in enumerate(of_cell)
    }  # fmt: skip
    run_all(runs, arguments.workers)
    found = {
        key: [json.loads((folder / "summary.json").read_text()) for folder in of_cell]
        for key, of_cell in folders.items()
    }
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
