"""Is a GGS step as fast as its bytes allow? One run, contenders interleaved:

    python -m bench.ggs_step [--machines 2] [--repeats 7] [--steps 8]

- ggs: a local step as `algorithm=ggs` takes it, remote rows fetched from the other machines;
- local: the same step (graph, batches, model) with every row of features in the machine's own memory;
- raw: one all_to_all of the same bytes, and nothing else.

The claim: ggs <= 1.5 · local + raw. Prints the medians over the repeats, with their spread, of the slowest machine.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from llcg_dist import seeding
from llcg_dist.comm.ledger import Kind, Ledger
from llcg_dist.comm.machine_group import MachineGroup
from llcg_dist.comm.remote_rows import FeatureTraffic, PeerRows
from llcg_dist.comm.torch_dist import Cluster
from llcg_dist.config.compose import load_config
from llcg_dist.config.schema import Config, Verify
from llcg_dist.data.derived import DataAccess, read_topology
from llcg_dist.data.partition import ensure_store, store_path
from llcg_dist.data.store import read_shard
from llcg_dist.data.views import GlobalView, GraphView
from llcg_dist.models import build_model
from llcg_dist.records.console import say
from llcg_dist.sampling.minibatch import fanouts_per_layer
from llcg_dist.sampling.neighbor import NeighborSampler
from llcg_dist.training.threads import prepare_computing
from llcg_dist.training.trainer import StepSettings, Trainer

# Reddit's width of features and the paper's model: 3 layers, hidden 256, fan-out 10, batches of 256.
SETTINGS = [
    "algorithm=ggs", "dataset.nodes=20000", "dataset.features=602", "dataset.degree=30", "model.hidden=256",
    "model.layers=3", "train.local_batch_size=256", "partition=random",
]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--machines", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--steps", type=int, default=8)
    arguments = parser.parse_args()
    if "RANK" in os.environ:
        measure(arguments.machines, arguments.repeats, arguments.steps)
        return
    with tempfile.TemporaryDirectory(prefix="llcg-bench-") as folder:
        ensure_store(settings(arguments.machines, folder), access=DataAccess.FULL_TOPOLOGY)
        processes = f"--nproc-per-node={1 + arguments.machines}"
        ranks = [sys.executable, "-m", "torch.distributed.run", "--standalone", processes]
        given = [f"--{key}={value}" for key, value in vars(arguments).items()]
        environment = os.environ | {"LLCG_BENCH": folder, "OMP_NUM_THREADS": "1"}
        subprocess.run([*ranks, "-m", "bench.ggs_step", *given], env=environment, check=True)
        report([json.loads(path.read_text()) for path in sorted(Path(folder).glob("rank*.json"))])


def settings(machines: int, folder: str) -> Config:
    return load_config([*SETTINGS, f"cluster.num_machines={machines}", f"partition.root={folder}/parts"])


def measure(machines: int, repeats: int, steps: int) -> None:
    config = settings(machines, os.environ["LLCG_BENCH"])
    prepare_computing(threads=1)
    cluster = Cluster("gloo", 120, Ledger(frozenset({Kind.FEATURES})))
    group = cluster.machine_group()
    if cluster.rank > 0:
        times = Contenders(config, cluster, group, steps).run(repeats)
        Path(os.environ["LLCG_BENCH"], f"rank{cluster.rank}.json").write_text(json.dumps(times))
    cluster.close()


class Contenders:
    """The three contenders at one machine: ggs, local and raw, as the module says."""

    def __init__(self, config: Config, cluster: Cluster, group: MachineGroup, steps: int) -> None:
        self._group, self._steps, self._machines, self._rank = group, steps, config.cluster.num_machines, cluster.rank
        part, store = cluster.rank - 1, store_path(config)
        shard, full_graph = read_shard(store / f"part{part}"), read_shard(store / "global").graph
        found = read_topology(store, shard.store_id, Verify.sizes)
        own = torch.from_numpy(shard.graph.features)
        self._traffic = FeatureTraffic()
        rows = PeerRows(group, range(1, self._machines + 1), own, self._traffic, cluster.ledger)
        nodes = shard.extra["nodes"]
        view = GlobalView(shard.graph, part, nodes, found, rows)
        self._ggs = build_trainer(config, view, part)
        in_memory = np.ascontiguousarray(full_graph.features)  # read once: the contender has no disk to wait for
        everything = GraphView(full_graph, view.train_nodes)
        everything._features = torch.from_numpy(in_memory)
        self._local = build_trainer(config, everything, part)
        self._theta = self._ggs.theta().clone()

    def run(self, repeats: int) -> dict[str, list[float]]:
        """Seconds of a step, by contender and repeat; the first round warms up and counts the bytes."""
        self._take_steps(self._ggs)
        taken = self._traffic.take()
        own, ones = (taken.id_bytes + taken.row_bytes) // self._steps, [1] * self._machines
        everyones = self._group.all_to_all(torch.full((self._machines,), own), ones, ones)
        self._bytes = int(everyones.sum()) // self._machines
        contenders: dict[str, Callable[[], None]] = {
            "ggs": lambda: self._take_steps(self._ggs),
            "local": lambda: self._take_steps(self._local),
            "raw": self._raw,
        }
        times: dict[str, list[float]] = {name: [] for name in contenders}
        for _ in range(repeats):
            for name, contender in contenders.items():
                self._together()
                started = time.perf_counter()
                contender()
                self._together()
                times[name].append((time.perf_counter() - started) / self._steps)
        return times | {"megabytes": [self._bytes / 1e6]}

    def _take_steps(self, trainer: Trainer) -> None:
        trainer.run_steps(self._theta, 1, self._steps)

    def _raw(self) -> None:
        share = self._bytes // (self._machines - 1)
        counts = [0 if other == self._rank else share for other in range(1, self._machines + 1)]
        sent = torch.zeros(sum(counts), dtype=torch.uint8)
        for _ in range(self._steps):
            self._group.all_to_all(sent, counts, counts)

    def _together(self) -> None:
        ones = [1] * self._machines
        self._group.all_to_all(torch.zeros(self._machines), ones, ones)


def build_trainer(config: Config, view: GraphView, part: int) -> Trainer:
    model = build_model(config.model, view.num_features, view.num_classes)
    sampler = NeighborSampler(view.topology, fanouts_per_layer(config.sampling.fanout, model.depth))
    steps = StepSettings(seeding.part_stream(part), config.seed, config.train.local_batch_size, config.train.local_lr)
    return Trainer(view, model, sampler, steps, config.train)


def report(ranks: list[dict[str, list[float]]]) -> None:
    slowest = {name: [max(values) for values in zip(*(rank[name] for rank in ranks), strict=True)] for name in ranks[0]}
    say(f"{statistics.mean(slowest.pop('megabytes')):.1f} MB of features and row numbers per machine and step")
    say("| contender | ms a step, median | lowest to highest |\n|---|---|---|")
    for name, seconds in slowest.items():
        low, middle, high = (1e3 * f(seconds) for f in (min, statistics.median, max))
        say(f"| {name} | {middle:.1f} | {low:.1f} to {high:.1f} |")
    ratios = [g / (1.5 * one + raw) for g, one, raw in zip(*slowest.values(), strict=True)]
    say(f"ggs / (1.5 local + raw): {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    main()
