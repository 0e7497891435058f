"""A graph of ogbn-products' size on one host: what each stage costs, and how that grows with the graph.

    python -m bench.scale [--sizes 16 4 1] [--machines 2 4 8] [--keep] [--folder DIR]

Each size (1/16, 1/4, 1 of the graph) is generated, cut into eight parts, trained for a few rounds and evaluated, by
the commands that a user types. Then the graph of 1/4 is cut into 2, 4 and 8 parts, to see what a machine holds of it.
Files go to a temporary folder (8 GB at the full size), which is removed at the end.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench import extrapolate
from bench.harness import RESULTS, Claim, Spread, publish, table
from bench.memory import Peak, Stage, watch
from llcg_dist.records.console import say

NODES, EDGES = 2_449_029, 61_859_140
# Classes, features and split are ogbn-products' own; so is the share of edges inside a class, about.
PRODUCTS = [
    "dataset.classes=47", f"dataset.degree={2 * EDGES / NODES:.3f}", "dataset.features=100", "dataset.homophily=0.8",
    "dataset.train_fraction=0.08", "dataset.val_fraction=0.02",
]  # fmt: skip
TRAINING = [
    "algorithm=llcg", "num_rounds=6", "algorithm.K=64", "train.local_batch_size=512", "sampling.server_fanout=10",
    "evaluate.every=3", "logger=none",
]  # fmt: skip
STAGES = {
    "loading dataset": "generate",
    "writing the whole graph": "write the whole graph",
    "cutting": "cut (METIS)",
    "counting": "count cut edges",
    "writing": "write the parts",
}
_PHASES = {
    "seconds_local": "local steps of a round, s",
    "seconds_correct": "its correction, s",
    "seconds_evaluate": "its evaluation on the whole graph, s",
}
_IN_ALL = "in all"
_OF_SHARES = 4
"""The size that is cut into several numbers of parts: 1/4."""


Figures = dict[str, Any]
"""Plain numbers, as bench/results.json holds them."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="*", default=[16, 4, 1], help="16 4 1: 1/16, 1/4 and all of it")
    parser.add_argument("--machines", type=int, nargs="*", default=[2, 4, 8], help="parts that 1/4 is cut into")
    parser.add_argument("--keep", action="store_true", help="what is not measured now stays as it was measured before")
    parser.add_argument("--folder", help="where files go (a temporary one by default)")
    arguments = parser.parse_args()
    figures: Figures = {"sizes": {}, "shares": {}, "bare": {}}
    if arguments.keep:
        figures |= json.loads(RESULTS.read_text()).get("scale", {}).get("figures", {})
    for size in arguments.sizes:
        with tempfile.TemporaryDirectory(prefix="llcg-scale-", dir=arguments.folder) as folder:
            found = {"partition": partition(size, 8, folder), "train": train(size, 8, folder)}
        figures["sizes"][str(size)] = found
        report(figures)  # it takes long: what is known so far is there to be read
    for machines in arguments.machines:
        with tempfile.TemporaryDirectory(prefix="llcg-scale-", dir=arguments.folder) as folder:
            for name, size in (("bare", NODES // 2000), ("shares", _OF_SHARES)):
                partition(size, machines, folder)
                figures[name][str(machines)] = train(size, machines, folder)
    report(figures)


def settings(size: int, machines: int, folder: str) -> list[str]:
    graph = [f"dataset.nodes={NODES // size}", f"cluster.num_machines={machines}"]
    return [*PRODUCTS, *graph, f"partition.root={folder}/parts"]


def partition(size: int, machines: int, folder: str) -> Figures:
    """{stage: cost}"""

    def stage_of(line: str) -> str | None:
        return next((name for start, name in STAGES.items() if line.startswith(start)), None)

    stages = llcg(["partition", *settings(size, machines, folder)], stage_of)
    return {stage.name: cost([stage]) for stage in stages} | {_IN_ALL: cost(stages)}


def train(size: int, machines: int, folder: str) -> Figures:
    run_dir = Path(folder) / f"run{size}"
    stages = llcg(["train", *settings(size, machines, folder), *TRAINING, f"run_dir={run_dir}"], lambda line: None)
    ranks = stages[0].ranks
    largest = Peak()
    for rank in range(1, machines + 1):
        largest.raise_to(ranks[rank])
    rows = [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]
    cut = json.loads((run_dir / "partition.json").read_text())
    summary = json.loads((run_dir / "summary.json").read_text())
    return cost(stages) | {
        "server": asdict(ranks[0]),
        "machine": asdict(largest),
        "part_bytes": max(part["bytes"] for part in cut["parts"]),
        "num_edges": cut["num_edges"],
        "machine_rss": summary["peak_rss_mb_machine"] * 2**20,
        **{key: max(row[key] for row in rows) for key in _PHASES},  # one of the rounds is evaluated
    }


def cost(stages: Sequence[Stage]) -> Figures:
    highest = Peak()
    for stage in stages:
        highest.raise_to(stage.peak)
    return {"seconds": sum(stage.seconds for stage in stages), "peak": asdict(highest)}


def llcg(arguments: list[str], stage_of: Callable[[str], str | None]) -> list[Stage]:
    say(f"llcg {' '.join(arguments)}")
    command = [str(Path(sys.executable).parent / "llcg"), *arguments]
    return watch(command, {"OMP_NUM_THREADS": "1"}, stage_of)[0]


def report(figures: Figures) -> None:
    sizes = dict(sorted(figures["sizes"].items(), key=lambda item: -int(item[0])))
    texts, claims = [_stages_table(sizes), _training_table(sizes)], []
    if "1" in sizes:
        trained = sizes["1"]["train"]
        claims += [
            _at_most("partitioning, all its processes, GB", sizes["1"]["partition"][_IN_ALL]["peak"], 12),
            _at_most("training, all ranks and the launcher, GB", trained["peak"], 10),
            _at_most("a machine's share, GB", trained["machine"], 1),
        ]
    shares, bare = figures["shares"], figures["bare"]
    if len(shares) > 1:
        texts.append(_shares_table(shares, bare))
        few, many = min(shares, key=int), max(shares, key=int)
        times = _beyond(shares[few], bare[few]) / _beyond(shares[many], bare[many])
        parts = int(many) / int(few)
        what = f"what a machine holds beyond a bare rank, P={few} over P={many} (parts: {parts:g})"
        claims.append(Claim(what, Spread.of([times]), at_least=0.75 * parts))
    publish("scale", "\n\n".join(texts), claims, figures)
    if {"1", "4"} <= set(sizes) and "8" in bare:
        extrapolate.main()


def _at_most(what: str, peak: Figures, gigabytes: float) -> Claim:
    return Claim(what, Spread.of([peak["total"] / 1e9]), at_most=gigabytes)


def _beyond(run: Figures, bare: Figures) -> float:
    return float(run["machine"]["total"] - bare["machine"]["total"])


def _gigabytes(peak: Figures) -> str:
    return f"{peak['total'] / 1e9:.2f} ({peak['anonymous'] / 1e9:.2f})"


def _by_size(first: str, sizes: Figures, rows: dict[str, list[str]]) -> str:
    named = [f"{'1' if size == '1' else f'1/{size}'}: {NODES // int(size):,} nodes" for size in sizes]
    return table([first, *named], [[name, *cells] for name, cells in rows.items()])


def _stages_table(sizes: Figures) -> str:
    names = ["start", *STAGES.values(), _IN_ALL]
    stages = {name: [found["partition"][name] for found in sizes.values()] for name in names}
    rows = {
        name: [f"{found['seconds']:.1f} s, {_gigabytes(found['peak'])} GB" for found in costs]
        for name, costs in stages.items()
    }
    about = "`llcg partition` into 8 parts: seconds, and peak memory of all its processes as the sum of PSS (of which \
anonymous: the rest is mapped files, which the kernel can take back)."
    return f"{about}\n\n{_by_size('stage', sizes, rows)}"


def _training_table(sizes: Figures) -> str:
    trained = [found["train"] for found in sizes.values()]
    rows = {
        "all ranks and the launcher, GB": [_gigabytes(run["peak"]) for run in trained],
        "the server, GB": [_gigabytes(run["server"]) for run in trained],
        "the largest machine, GB": [_gigabytes(run["machine"]) for run in trained],
        "… its peak RSS, with the libraries that all ranks share, GB": [
            f"{run['machine_rss'] / 1e9:.2f}" for run in trained
        ],
        "its part on disk, GB": [f"{run['part_bytes'] / 1e9:.3f}" for run in trained],
        "the whole job, s": [f"{run['seconds']:.1f}" for run in trained],
        **{what: [f"{run[key]:.2f}" for run in trained] for key, what in _PHASES.items()},
    }
    about = f"`llcg train {' '.join(TRAINING)}`: 1 + 8 ranks, the default model."
    return f"{about}\n\n{_by_size('peak memory, time', sizes, rows)}"


def _shares_table(shares: Figures, bare: Figures) -> str:
    rows = [
        [
            machines,
            f"{run['part_bytes'] / 1e6:.0f}",
            f"{run['machine']['total'] / 1e6:.0f} ({run['machine']['anonymous'] / 1e6:.0f})",
            f"{bare[machines]['machine']['total'] / 1e6:.0f}",
            f"{_beyond(run, bare[machines]) / 1e6:.0f}",
        ]
        for machines, run in sorted(shares.items(), key=lambda item: int(item[0]))
    ]
    about = f"The graph of 1/{_OF_SHARES} on P machines. A bare rank is one of the same job on a graph of 2,000 nodes:\
 Python, torch, PyG and DGL, whose libraries all ranks share."
    head = ["P", "largest part on disk, MB", "largest machine, MB (anonymous)", "a bare rank, MB", "beyond it, MB"]
    return f"{about}\n\n{table(head, rows)}"


if __name__ == "__main__":
    main()
