"""The stages of bench.scale, each by the command that a user types, watched from outside."""

import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path

from bench.kept import Figures
from bench.memory import Peak, Stage, watch
from bench.scale_files import CLASSES, FEATURES, HOMOPHILY, file_settings, write_files
from llcg_dist.data.parts import metis_fits
from llcg_dist.records.console import say

NODES, EDGES = 2_449_029, 61_859_140
PARTS = 8
FRACTIONS = ["dataset.train_fraction=0.08", "dataset.val_fraction=0.02"]
# Classes, features and split are ogbn-products' own; so is the share of edges inside a class, about.
PRODUCTS = [
    f"dataset.classes={CLASSES}", f"dataset.degree={2 * EDGES / NODES:.3f}", f"dataset.features={FEATURES}",
    f"dataset.homophily={HOMOPHILY}", *FRACTIONS,
]  # fmt: skip
TRAINING = [
    "algorithm=llcg", "num_rounds=6", "algorithm.K=64", "train.local_batch_size=512", "sampling.server_fanout=10",
    "evaluate.every=3", "logger=none",
]  # fmt: skip
STAGES = {
    "loading dataset": "ingest",
    "writing the whole graph": "write the whole graph",
    "cutting": "cut (stream)",
    "counting": "count cut edges",
    "writing": "write the parts",
}
PHASES = {
    "seconds_local": "local steps of a round, s",
    "seconds_correct": "its correction, s",
    "seconds_evaluate": "its evaluation on the whole graph, s",
}
IN_ALL = "in all"
PREDICTED = "predicted"


class Sized:
    """One size of the graph: its files, its store and its run, in a folder of its own."""

    def __init__(
        self, factor: Fraction, folder: Path, store_settings: Sequence[str] = (), on_disk: bool = False
    ) -> None:
        """`on_disk`: hidden states of an evaluation."""
        self.folder = folder / f"size-{str(factor).replace('/', '-')}"
        self.nodes, self._edges = int(factor * NODES), int(factor * EDGES)
        self._settings = [
            *file_settings(self.folder / "files"), *FRACTIONS, "partition=stream", f"cluster.num_machines={PARTS}",
            f"partition.root={self.folder}/parts", *store_settings,
            *([f"evaluate.scratch={self.folder}/scratch"] if on_disk else []),
        ]  # fmt: skip

    def stages(self) -> dict[str, Callable[[], Figures]]:
        """In this order; each needs what those before it have left in the folder."""
        measured = {"partition": self.partition, "metis": self.metis, "train": self.train, "predict": self.predict}
        return {PREDICTED: self.predicted} | measured

    def predicted(self) -> Figures:
        """What `llcg doctor` says of all stages before the first of them, and the bytes of the user's files."""
        write_files(self.folder / "files", self.nodes, self._edges)
        shutil.rmtree(self.folder / "parts", ignore_errors=True)
        arguments = ["doctor", "--stages", "--json", *self._settings, *TRAINING]
        say(f"llcg {' '.join(arguments)}")
        done = subprocess.run([LLCG, *arguments], env=os.environ | ENVIRONMENT, stdout=subprocess.PIPE, check=True)
        files = sum(path.stat().st_size for path in (self.folder / "files").iterdir())
        return json.loads(done.stdout) | {"files": files}

    def partition(self) -> Figures:
        """{stage of it: cost}, and the number of cut edges."""
        write_files(self.folder / "files", self.nodes, self._edges)
        shutil.rmtree(self.folder / "parts", ignore_errors=True)
        costs = partition_costs(self._settings, self.folder)
        manifest = json.loads((self._store() / "manifest.json").read_text())
        return costs | {"cut_edges": manifest["cut_edges"], "num_edges": manifest["num_edges"]}

    def metis(self) -> Figures:
        """The same graph cut by METIS alone; nothing where its memory is not enough."""
        if not metis_fits(2 * self._edges):
            return {}
        self._rebuild()
        command = [sys.executable, "-m", "bench.scale_cut", str(self._store()), "metis", str(PARTS)]
        stages, lines = watch(command, ENVIRONMENT, lambda line: line if line in ("cutting", "counting") else None)
        cutting = next(stage for stage in stages if stage.name == "cutting")
        return cost([cutting]) | {"cut_edges": int(lines[-1])}

    def train(self) -> Figures:
        self._rebuild()
        return train_costs(self._settings, PARTS, self.folder)

    def predict(self) -> Figures:
        out = self.folder / "predictions.parquet"
        return cost(llcg(["predict", f"run_dir={self.folder}/run", f"out={out}"], folder=self.folder))

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def _rebuild(self) -> None:
        """What an earlier stage left, where it was lost since."""
        write_files(self.folder / "files", self.nodes, self._edges)
        if not list((self.folder / "parts").glob("*/manifest.json")):
            llcg(["partition", *self._settings])

    def _store(self) -> Path:
        return next((self.folder / "parts").glob("*/manifest.json")).parent


def generated(nodes: int, machines: int, folder: Path) -> Figures:
    """What a machine of so many holds, of a generated graph of about this size."""
    graph = [*PRODUCTS, f"dataset.nodes={nodes}", "partition=stream", f"cluster.num_machines={machines}"]
    settings = [*graph, f"partition.root={folder}/parts"]
    llcg(["partition", *settings])
    figures = train_costs(settings, machines, folder)
    shutil.rmtree(folder)
    return figures


def partition_costs(settings: list[str], folder: Path) -> Figures:
    def stage_of(line: str) -> str | None:
        return next((name for start, name in STAGES.items() if line.startswith(start)), None)

    stages = llcg(["partition", *settings], stage_of, folder)
    return {stage.name: cost([stage]) for stage in stages} | {IN_ALL: cost(stages)}


def train_costs(settings: list[str], machines: int, folder: Path) -> Figures:
    run_dir = folder / "run"
    shutil.rmtree(run_dir, ignore_errors=True)  # of a job that was killed
    folder.mkdir(parents=True, exist_ok=True)
    stages = llcg(["train", *settings, *TRAINING, f"run_dir={run_dir}"], folder=folder)
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
        "cpu_local": sum(statistics.mean(row["cpu_local_by_part"]) for row in rows),
        "cpu_evaluate": statistics.median(row["cpu_evaluate"] for row in rows if row["cpu_evaluate"]),
        **{key: max(row[key] for row in rows) for key in PHASES},  # one of the rounds is evaluated
    }


def cost(stages: Sequence[Stage]) -> Figures:
    highest = Peak()
    for stage in stages:
        highest.raise_to(stage.peak)
    disk = max(stage.disk for stage in stages)
    sums = {key: sum(getattr(stage, key) for stage in stages) for key in ("seconds", "cpu", "others")}
    return sums | {"peak": asdict(highest), "disk": disk}


ENVIRONMENT = {"OMP_NUM_THREADS": "1"}
LLCG = str(Path(sys.executable).parent / "llcg")


def llcg(
    arguments: list[str], stage_of: Callable[[str], str | None] = lambda line: None, folder: Path | None = None
) -> list[Stage]:
    say(f"llcg {' '.join(arguments)}")
    return watch([LLCG, *arguments], ENVIRONMENT, stage_of, folder)[0]
