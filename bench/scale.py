"""A graph of ogbn-products' size on one host: what each stage costs, and how that grows with the graph.

    python -m bench.scale [--sizes 16 4 1] [--machines 2 4 8] [--folder DIR]

Each size (1/16, 1/4, 1 of the graph) is generated, cut into eight parts, trained for a few rounds and evaluated, by
the commands that a user types. Then the graph of 1/4 is cut into 2, 4 and 8 parts, to see what a machine holds of it.
Files go to a temporary folder (8 GB at the full size), which is removed at the end.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench import extrapolate
from bench.harness import Claim, Spread, publish, table
from bench.memory import Peak, Stage, watch
from llcg_dist.cli.console import say

NODES, EDGES = 2_449_029, 61_859_140
# Classes, features and split are ogbn-products' own; so is the share of edges inside a class, about.
PRODUCTS = [
    "dataset.classes=47", f"dataset.degree={2 * EDGES / NODES:.3f}", "dataset.features=100", "dataset.homophily=0.8",
    "dataset.train_fraction=0.08", "dataset.val_fraction=0.02",
]  # fmt: skip
TRAINING = [
    "algorithm=llcg", "num_rounds=2", "algorithm.K=16", "train.local_batch_size=512", "sampling.server_fanout=10",
    "evaluate.every=2", "logger=none",
]  # fmt: skip
STAGES = {
    "loading dataset": "generate",
    "writing the whole graph": "write the whole graph",
    "cutting": "cut (METIS)",
    "counting": "count cut edges",
    "writing": "write the parts",
}
_OF_SHARES = 4
"""The size that is cut into several numbers of parts: 1/4."""


@dataclass
class Cost:
    """Of one stage, or of a whole command."""

    seconds: float
    peak: Peak

    @classmethod
    def of(cls, stages: Sequence[Stage]) -> "Cost":
        whole = Peak()
        for stage in stages:
            whole.raise_to(stage.peak)
        return cls(sum(stage.seconds for stage in stages), whole)


@dataclass
class Training:
    cost: Cost
    server: Peak
    machine: Peak
    """The largest of all machines."""
    part_bytes: int
    """Files of the largest part."""
    num_edges: int
    seconds_evaluate: float
    seconds_correct: float
    seconds_local: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[16, 4, 1], help="16 4 1: 1/16, 1/4, the whole")
    parser.add_argument("--machines", type=int, nargs="*", default=[2, 4, 8], help="parts that 1/4 is cut into")
    parser.add_argument("--folder", help="where files go (a temporary one by default)")
    arguments = parser.parse_args()
    sizes: dict[int, dict[str, Any]] = {}
    for size in arguments.sizes:
        with tempfile.TemporaryDirectory(prefix="llcg-scale-", dir=arguments.folder) as folder:
            stages = partition(size, 8, folder)
            sizes[size] = {
                "stages": stages,
                "partition": Cost.of(list(stages.values())),
                "train": train(size, 8, folder),
            }
        report(sizes, {}, {})  # it takes long: what is known so far is there to be read
    with tempfile.TemporaryDirectory(prefix="llcg-scale-", dir=arguments.folder) as folder:
        shares = {
            machines: sizes[_OF_SHARES]["train"]
            if machines == 8 and _OF_SHARES in sizes
            else share(_OF_SHARES, machines, folder)
            for machines in arguments.machines
        }
        bare = {machines: share(NODES // 2000, machines, folder) for machines in shares}
    report(sizes, shares, bare)


def settings(size: int, machines: int, folder: str) -> list[str]:
    graph = [f"dataset.nodes={NODES // size}", f"cluster.num_machines={machines}"]
    return [*PRODUCTS, *graph, f"partition.root={folder}/parts"]


def partition(size: int, machines: int, folder: str) -> dict[str, Stage]:
    def stage_of(line: str) -> str | None:
        return next((name for start, name in STAGES.items() if line.startswith(start)), None)

    stages, _ = llcg(["partition", *settings(size, machines, folder)], stage_of)
    return {stage.name: stage for stage in stages}


def train(size: int, machines: int, folder: str) -> Training:
    run_dir = Path(folder) / f"run{machines}-{size}"
    stages, _ = llcg(["train", *settings(size, machines, folder), *TRAINING, f"run_dir={run_dir}"], lambda line: None)
    ranks = stages[0].ranks
    machine = Peak()
    for rank in range(1, machines + 1):
        machine.raise_to(ranks[rank])
    rows = [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]
    cut = json.loads((run_dir / "partition.json").read_text())
    seconds = {
        f"seconds_{what}": max(row[f"seconds_{what}"] for row in rows)  # one of the rounds is evaluated
        for what in ("evaluate", "correct", "local")
    }
    part_bytes = max(part["bytes"] for part in cut["parts"])
    return Training(Cost.of(stages), ranks[0], machine, part_bytes, cut["num_edges"], **seconds)


def share(size: int, machines: int, folder: str) -> Training:
    partition(size, machines, folder)
    return train(size, machines, folder)


def llcg(arguments: list[str], stage_of: Callable[[str], str | None]) -> tuple[list[Stage], list[str]]:
    say(f"llcg {' '.join(arguments)}")
    command = [str(Path(sys.executable).parent / "llcg"), *arguments]
    return watch(command, {"OMP_NUM_THREADS": "1"}, stage_of)


def report(sizes: dict[int, dict[str, Any]], shares: dict[int, Training], bare: dict[int, Training]) -> None:
    texts = [_stages_table(sizes), _training_table(sizes)]
    claims = []
    if 1 in sizes:
        trained: Training = sizes[1]["train"]
        claims += [
            _at_most("partitioning, all its processes, GB", sizes[1]["partition"].peak.total, 12),
            _at_most("training, all ranks and the launcher, GB", trained.cost.peak.total, 10),
            _at_most("a machine's share, GB", trained.machine.total, 1),
        ]
    if shares:
        texts.append(_shares_table(shares, bare))
        few, many = min(shares), max(shares)
        beyond = [shares[machines].machine.total - bare[machines].machine.total for machines in (few, many)]
        what = f"what a machine holds beyond a bare rank, P={few} to P={many} (parts: {many / few:g})"
        claims.append(Claim(what, Spread.of([beyond[0] / beyond[1]]), at_least=0.75 * many / few))
    figures = {
        "sizes": {str(size): _plain(found) for size, found in sizes.items()},
        "shares": {str(machines): asdict(found) for machines, found in shares.items()},
        "bare": {str(machines): asdict(found) for machines, found in bare.items()},
    }
    publish("scale", "\n\n".join(texts), claims, figures)
    if {1, 4} <= set(sizes) and 8 in bare:
        extrapolate.main()


def _at_most(what: str, found: int, gigabytes: float) -> Claim:
    return Claim(what, Spread.of([found / 1e9]), at_most=gigabytes)


def _plain(found: dict[str, Any]) -> dict[str, Any]:
    stages = {name: {"seconds": stage.seconds, "peak": asdict(stage.peak)} for name, stage in found["stages"].items()}
    return {"stages": stages, "partition": asdict(found["partition"]), "train": asdict(found["train"])}


def _gigabytes(peak: Peak) -> str:
    return f"{peak.total / 1e9:.2f} ({peak.anonymous / 1e9:.2f})"


def _by_size(first: str, sizes: dict[int, dict[str, Any]], rows: dict[str, list[str]]) -> str:
    named = [f"{'1' if size == 1 else f'1/{size}'}: {NODES // size:,} nodes" for size in sizes]
    return table([first, *named], [[name, *cells] for name, cells in rows.items()])


def _stages_table(sizes: dict[int, dict[str, Any]]) -> str:
    def cost(stage: Stage | Cost) -> str:
        return f"{stage.seconds:.1f} s, {_gigabytes(stage.peak)} GB"

    rows = {name: [cost(found["stages"][name]) for found in sizes.values()] for name in ["start", *STAGES.values()]}
    rows["**`llcg partition`**"] = [cost(found["partition"]) for found in sizes.values()]
    about = "`llcg partition` into 8 parts: seconds, and peak memory of all its processes as the sum of PSS (of which \
anonymous: the rest is mapped files, which the kernel can take back)."
    return f"{about}\n\n{_by_size('stage', sizes, rows)}"


def _training_table(sizes: dict[int, dict[str, Any]]) -> str:
    trained: list[Training] = [found["train"] for found in sizes.values()]
    rows = {
        "all ranks and the launcher, GB": [_gigabytes(run.cost.peak) for run in trained],
        "the server, GB": [_gigabytes(run.server) for run in trained],
        "the largest machine, GB": [_gigabytes(run.machine) for run in trained],
        "its part on disk, GB": [f"{run.part_bytes / 1e9:.3f}" for run in trained],
        "the whole job, s": [f"{run.cost.seconds:.1f}" for run in trained],
        "local steps of a round, s": [f"{run.seconds_local:.2f}" for run in trained],
        "its correction, s": [f"{run.seconds_correct:.2f}" for run in trained],
        "its evaluation on the whole graph, s": [f"{run.seconds_evaluate:.2f}" for run in trained],
    }
    about = f"`llcg train {' '.join(TRAINING)}`: 1 + 8 ranks, the default model."
    return f"{about}\n\n{_by_size('peak memory, time', sizes, rows)}"


def _shares_table(shares: dict[int, Training], bare: dict[int, Training]) -> str:
    rows = [
        [
            machines,
            f"{run.part_bytes / 1e6:.0f}",
            f"{run.machine.total / 1e6:.0f} ({run.machine.anonymous / 1e6:.0f})",
            f"{bare[machines].machine.total / 1e6:.0f}",
            f"{(run.machine.total - bare[machines].machine.total) / 1e6:.0f}",
        ]
        for machines, run in shares.items()
    ]
    about = (
        f"The graph of 1/{_OF_SHARES} on P machines. A bare rank is that of the same job on a graph of 2,000 nodes: \
 Python, torch, PyG and DGL, whose libraries all ranks share."
    )
    head = ["P", "largest part on disk, MB", "largest machine, MB (anonymous)", "a bare rank, MB", "beyond it, MB"]
    return f"{about}\n\n{table(head, rows)}"


if __name__ == "__main__":
    main()
