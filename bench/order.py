"""What it gains that the store keeps the whole graph in the order of its parts (partition.order=parts):

    python -m bench.order [--nodes 300000] [--repeats 5]

A generated graph with 50 neighbours a node, 100 features, eight parts of partition=stream: one evaluation of 3 SAGE
layers, and batches of the server's correction, on one thread, in seconds of its CPU. Contenders take turns.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bench.harness import Claim, Spread, interleaved, publish, ratio, table
from bench.scale_stages import PRODUCTS
from llcg_dist.config.compose import load_config
from llcg_dist.config.partition import NodeOrder
from llcg_dist.data.csr import Topology
from llcg_dist.data.graph import TRAIN
from llcg_dist.data.partition import ensure_store
from llcg_dist.data.store import read_shard
from llcg_dist.models import build_model
from llcg_dist.models.stages import GraphModel
from llcg_dist.sampling.neighbor import NeighborSampler
from llcg_dist.training.layerwise import FullGraphForward
from llcg_dist.training.threads import prepare_computing

_FANOUTS, _SEEDS, _BATCHES = [10, 10, 10], 256, 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=300_000)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    prepare_computing(threads=1)
    work: dict[str, Callable[[], Any]] = {}
    with tempfile.TemporaryDirectory(prefix="llcg-order-") as folder:
        for order in NodeOrder:
            evaluate, sample = contenders(arguments.nodes, order, Path(folder))
            work |= {f"evaluation, {order}": evaluate, f"sampling, {order}": sample}
        seconds = interleaved(work, arguments.repeats, clock=time.process_time)
    rows = [[name, Spread.of(values)] for name, values in seconds.items()]
    claims = [
        Claim(f"{what}: given order / order of the parts", ratio(*(seconds[f"{what}, {order}"] for order in NodeOrder)))
        for what in ("evaluation", "sampling")
    ]
    text = f"{arguments.nodes:,} nodes; sampling: {_BATCHES} batches of {_SEEDS} seeds, fan-out 10.\n\n"
    publish("order", text + table(["", "CPU seconds"], rows), claims)


def contenders(nodes: int, order: NodeOrder, folder: Path) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """(one evaluation, batches of the correction) on a store of this order."""
    settings = [*PRODUCTS, f"dataset.nodes={nodes}", "partition=stream", "cluster.num_machines=8", "model.layers=3"]
    config = load_config([*settings, f"partition.order={order}", f"partition.root={folder}"])
    graph = read_shard(ensure_store(config)[0] / "global").graph
    torch.manual_seed(0)
    model = build_model(config.model, graph.num_features, graph.num_classes)
    assert isinstance(model, GraphModel)
    sampler = NeighborSampler(Topology(graph.indptr, graph.indices), _FANOUTS)
    rng = np.random.default_rng(0)
    seeds = [rng.choice(graph.nodes_in(TRAIN), _SEEDS, replace=False) for _ in range(_BATCHES)]
    features = torch.from_numpy(graph.features)

    def draw() -> None:
        for number, chosen in enumerate(seeds):
            features.index_select(0, sampler.sample(chosen, number).nodes)

    return partial(FullGraphForward(graph, model, config.evaluate.chunk, recalibrate=True).logits), draw


if __name__ == "__main__":
    main()
