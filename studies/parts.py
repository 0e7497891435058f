"""Do other parts learn better? Scores on METIS parts, on parts balanced by training labels, and on spread clusters:

    python -m studies.parts --data FOLDER [--seeds 3] [--workers 2] [--out runs/parts]

Four graphs, eight machines, 25 rounds, with the settings of studies.accuracy. Scores are with the METIS of this
environment (partition.backend=auto), cut, balance and skew with either library's. FOLDER holds Amazon/, Planetoid/ and
Hetero/ as PyG's classes expect them. Finished runs are kept (studies/pool.py).
"""

import argparse
import json
import time
from pathlib import Path

from bench.harness import publish, table

from llcg_dist.config.compose import load_config
from llcg_dist.data.cut import PartitionQuality
from llcg_dist.data.datasets import load_dataset
from llcg_dist.data.parts import assign_parts
from studies.accuracy_grid import COMMON, FIRST_SEED, FOLDERS, FOUR, GRAPHS
from studies.pool import run_all
from studies.real_graphs import mean_std

METHODS = ("psgd_pa", "llcg", "llcg_plus")
WAYS = {"metis": [], "metis, labels": ["partition.balance=labels"], "clusters": ["partition=clusters"]}
BACKENDS = ("dgl", "pymetis")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("runs/parts"))
    arguments = parser.parse_args()
    seeds = range(FIRST_SEED, FIRST_SEED + arguments.seeds)
    runs = {
        _folder(arguments.out, graph, way, method, seed): [
            *COMMON, *_graph_settings(graph, arguments.data), *settings, f"algorithm={method}", f"seed={seed}",
            f"partition.root={arguments.out}/stores",
        ]
        for graph in FOUR
        for way, settings in WAYS.items()
        for method in METHODS
        for seed in seeds
    }  # fmt: skip
    run_all(runs, arguments.workers)
    rows = []
    for graph in FOUR:
        for way, settings in WAYS.items():
            common = [*COMMON, *_graph_settings(graph, arguments.data), *settings]
            of_backends = [_quality([*common, f"partition.backend={backend}"]) for backend in BACKENDS]
            quality = [" / ".join(values) for values in zip(*of_backends, strict=True)]
            scores = [
                mean_std([_test_score(_folder(arguments.out, graph, way, method, seed)) for seed in seeds])
                for method in METHODS
            ]
            rows.append([graph, way, *quality, *scores])
    measures = ("cut %", "largest part", "worst skew %", "seconds to cut")
    head = ["graph", "parts", *(f"{measure}, {' / '.join(BACKENDS)}" for measure in measures), *METHODS]
    publish("parts", table(head, rows), [])


def _folder(out: Path, graph: str, way: str, method: str, seed: int) -> Path:
    return out / "-".join(name.replace(" ", "_") for name in (graph, way, method, str(seed)))


def _graph_settings(graph: str, data: Path) -> list[str]:
    return [*GRAPHS[graph], *([f"dataset.root='{data / FOLDERS[graph]}'"] if graph in FOLDERS else [])]


def _quality(settings: list[str]) -> list[str]:
    """Cut, balance, skew of the training labels, and how long it took."""
    config = load_config(settings)
    graph, num_parts = load_dataset(config.dataset), config.cluster.num_machines
    started = time.perf_counter()
    assignment = assign_parts(graph, num_parts, config.partition)
    seconds = time.perf_counter() - started
    found = PartitionQuality.of(graph, assignment, num_parts)
    cut, skew = 100 * found.cut_share, 100 * found.worst_label_skew
    return [f"{cut:.1f}", f"{found.largest_part:.2f}", f"{skew:.0f}", f"{seconds:.1f}"]


def _test_score(run_dir: Path) -> float:
    """Percent, of the round with the best validation score."""
    return 100 * float(json.loads((run_dir / "summary.json").read_text())["test_score_at_best_val"])


if __name__ == "__main__":
    main()
