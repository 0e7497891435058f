"""The evidence of docs/accuracy.md: every method and every ingredient of llcg_plus, on six graphs, over seeds.

    python -m bench.accuracy --data FOLDER [--seeds 5] [--axis-seeds 3] [--workers 2] [--out runs/accuracy]
                             [--graphs cora tolokers ...] [--part core|ablation|axes ...]

FOLDER holds Planetoid/, Hetero/ and Amazon/ as PyG's classes expect them; without it only synthetic graphs are run.
An interrupted call can be continued (bench/pool.py); <out>/tables.md is written from the runs there are.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.accuracy_tables import Runs, tables
from bench.pool import run_all
from llcg_dist.cli.console import say

GRAPHS = {
    "computers": ["dataset=amazon", "dataset.name=Computers"],
    "cora": ["dataset=planetoid", "dataset.name=Cora"],
    "tolokers": ["dataset=heterophilous", "dataset.name=Tolokers", "dataset.split=0"],
    "homophily 0.3": ["dataset=synthetic", "dataset.homophily=0.3"],
    "homophily 0.5": ["dataset=synthetic", "dataset.homophily=0.5"],
    "homophily 0.7": ["dataset=synthetic", "dataset.homophily=0.7"],
}
FOLDERS = {"computers": "Amazon", "cora": "Planetoid", "tolokers": "Hetero"}

COMMON = [
    "cluster.num_machines=8", "num_rounds=25", "algorithm.K=8", "train.local_lr=3e-3", "train.server_lr=3e-3",
    "sampling.fanout=5",
]  # fmt: skip
"""The same on every graph: nothing is tuned for one of them."""

METHODS: dict[str, list[str]] = {
    "single": [],
    "server_only": [],
    "server_only S=4": ["algorithm.S=4"],
    "psgd_pa": [],
    "ggs": [],
    "full_sync": [],
    "llcg": [],
    "llcg_plus": [],
}
"""With `average` statistics llcg is llcg_paper."""

INGREDIENTS = {
    "S=4": ["algorithm.S=4"],
    "calibrated": ["train.local_loss=calibrated"],
    "cosine": ["train.lr_schedule=cosine"],
    "cosine in steps": ["train.lr_schedule=cosine", "train.lr_unit=steps"],
    "nesterov 0.5": ["algorithm.server_optimizer=nesterov", "algorithm.server_momentum=0.5"],
    "adam": ["algorithm.server_optimizer=adam"],
    "reset": ["train.optimizer_state=reset"],
    "train_nodes": ["algorithm.averaging=train_nodes"],
    "server fan out 10": ["sampling.server_fanout=10"],
}
"""Each alone on top of llcg, and on top of llcg_plus where that does not have it."""

AXES = {
    "random parts": ["partition=random"],
    "P=4": ["cluster.num_machines=4"],
    "P=16": ["cluster.num_machines=16"],
    "rho=1": ["algorithm.rho=1.0"],
    "K=2": ["algorithm.K=2"],
    "K=16": ["algorithm.K=16"],
}
PARTS = ("core", "ablation", "axes")
AXIS_METHODS = ("single", "psgd_pa", "ggs", "llcg_paper", "llcg_plus")


@dataclass(frozen=True)
class Job:
    part: str
    graph: str
    method: str
    seed: int
    settings: list[str]

    def folder(self, out: Path) -> Path:
        return out / self.part / self.graph.replace(" ", "-") / self.method.replace(" ", "-") / str(self.seed)

    def overrides(self, out: Path) -> list[str]:
        # A synthetic graph's store is named after its generator alone: one folder for each.
        return [*self.settings, f"partition.root='{out / 'partitions' / self.graph.replace(' ', '-')}'"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--axis-seeds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("runs/accuracy"))
    parser.add_argument("--graphs", nargs="*", choices=[*GRAPHS], default=[*GRAPHS])
    parser.add_argument("--part", nargs="*", choices=PARTS, default=PARTS)
    arguments = parser.parse_args()
    graphs = [graph for graph in arguments.graphs if arguments.data or graph not in FOLDERS]
    jobs = [
        job
        for job in all_jobs(arguments.data, arguments.seeds, arguments.axis_seeds)
        if job.graph in graphs and job.part in arguments.part
    ]
    run_all({job.folder(arguments.out): job.overrides(arguments.out) for job in jobs}, arguments.workers)
    text = tables(Runs(arguments.out))
    (arguments.out / "tables.md").write_text(text)
    say(text)


def all_jobs(data: Path | None, seeds: int, axis_seeds: int) -> Iterator[Job]:
    """Part by part and seed by seed, so that a sweep that was stopped early has what matters most."""
    for wanted in PARTS:
        for seed in range(axis_seeds if wanted == "axes" else seeds):
            for graph, settings in GRAPHS.items():
                root = [f"dataset.root='{data / FOLDERS[graph]}'"] if data and graph in FOLDERS else []
                for part, method, overrides in _variants():
                    if part == wanted:
                        yield Job(part, graph, method, seed, [*COMMON, *settings, *root, *overrides, f"seed={seed}"])


def _variants() -> Iterator[tuple[str, str, list[str]]]:
    for method, settings in METHODS.items():
        for kind in ("average", "recalibrate"):
            chosen = [f"algorithm={method.split()[0]}", *settings, f"algorithm.batchnorm_stats={kind}"]
            yield "core", f"{method}, {kind}", chosen
    for name, settings in INGREDIENTS.items():
        yield "ablation", f"llcg + {name}", ["algorithm=llcg", *settings]
        if name != "S=4":
            yield "ablation", f"llcg_plus + {name}", ["algorithm=llcg_plus", *settings]
    for axis, settings in AXES.items():
        for method in AXIS_METHODS:
            grows = not (axis == "rho=1" and method in ("psgd_pa", "ggs", "single"))  # their rho is 1 already
            if grows and not (axis == "random parts" and method == "single"):
                yield "axes", f"{axis}, {method}", [f"algorithm={method}", *settings]


if __name__ == "__main__":
    main()
