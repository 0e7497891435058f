"""Does train.precision=bfloat16 cost accuracy? llcg with both precisions, over seeds:

    python -m studies.precision --data FOLDER [--seeds 5] [--workers 2] [--out runs/precision] [--graphs NAME ...]

Amazon-Computers (FOLDER/Amazon), Tolokers (FOLDER/Hetero) and the synthetic graph of homophily 0.5, with the settings
of studies/accuracy.py. All on loopback, which has the bits of real processes. Finished runs are kept (studies/pool.py).
"""

import argparse
import json
from pathlib import Path

import numpy as np
from bench.harness import Claim, Spread, publish, table

from llcg_dist.config.compose import quoted_override
from llcg_dist.config.train import Precision
from studies.accuracy_grid import COMMON, FIRST_SEED, FOLDERS, GRAPHS
from studies.pool import run_all

COMPARED = ("computers", "tolokers", "homophily 0.5")
MOST_POINTS = 0.2

Scores = dict[tuple[str, str], np.ndarray]
"""(graph, precision) -> test scores in %, seed by seed."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("runs/precision"))
    parser.add_argument("--graphs", nargs="*", choices=COMPARED, default=COMPARED)
    arguments = parser.parse_args()
    seeds = range(FIRST_SEED, FIRST_SEED + arguments.seeds)
    folders = {
        (graph, str(precision)): [arguments.out / graph.replace(" ", "_") / precision / str(seed) for seed in seeds]
        for graph in arguments.graphs
        for precision in Precision
    }
    runs = {
        folder: settings(arguments.data, arguments.out, graph, precision, seed)
        for (graph, precision), of_cell in folders.items()
        for folder, seed in zip(of_cell, seeds, strict=True)
    }
    run_all(runs, arguments.workers)
    found = {cell: np.array([test_score(folder) for folder in of_cell]) for cell, of_cell in folders.items()}
    publish("precision", scores_table(found), claims(found))


def settings(data: Path, out: Path, graph: str, precision: str, seed: int) -> list[str]:
    root = [quoted_override("dataset.root", str(data / FOLDERS[graph]))] if graph in FOLDERS else []
    parts = quoted_override("partition.root", str(out / "partitions" / graph.replace(" ", "_")))
    chosen = ["algorithm=llcg", f"train.precision={precision}", f"seed={seed}"]
    return [*COMMON, *GRAPHS[graph], *root, *chosen, parts]


def test_score(folder: Path) -> float:
    """In %, at the best validation round."""
    return 100 * json.loads((folder / "summary.json").read_text())["test_score_at_best_val"]


def scores_table(found: Scores) -> str:
    rows = []
    for graph in dict.fromkeys(graph for graph, _ in found):
        cells = [with_spread(found[graph, precision]) for precision in Precision]
        rows.append([graph, *cells, with_spread(differences(found, graph), "+.2f")])
    count = len(next(iter(found.values())))
    head = ["graph", *map(str, Precision), "difference, seed by seed"]
    return f"Test score (%) at the best validation round, mean ± deviation over {count} seeds.\n\n{table(head, rows)}"


def claims(found: Scores) -> list[Claim]:
    graphs = dict.fromkeys(graph for graph, _ in found)
    what = "bfloat16 from float32, points of test score (of the means)"
    distance = {graph: abs(float(differences(found, graph).mean())) for graph in graphs}
    return [Claim(f"{graph}: {what}", Spread.of([distance[graph]]), at_most=MOST_POINTS) for graph in graphs]


def differences(found: Scores, graph: str) -> np.ndarray:
    """In points, seed by seed."""
    return found[graph, Precision.bfloat16] - found[graph, Precision.float32]


def with_spread(values: np.ndarray, shape: str = ".2f") -> str:
    return f"{values.mean():{shape}} ± {values.std(ddof=min(1, len(values) - 1)):.2f}"


if __name__ == "__main__":
    main()
