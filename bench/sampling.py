"""How long does drawing a mini-batch take? Contenders take turns:

    python -m bench.sampling [--repeats 15]

Three layers, 256 seeds, fan-out 10, a generated graph of 100,000 nodes with 50 neighbours each, one thread.
"""

import argparse
from functools import partial

import numpy as np
import torch

from bench.dgl_sampler import DglNeighborSampler
from bench.harness import Claim, Spread, interleaved, publish, ratio, table
from llcg_dist.config.compose import load_config
from llcg_dist.data.csr import Topology
from llcg_dist.data.datasets import load_dataset
from llcg_dist.sampling.minibatch import Sampler
from llcg_dist.sampling.neighbor import NeighborSampler

SETTINGS = ["dataset.nodes=100000", "dataset.degree=50"]
FANOUTS, SEEDS, BATCHES = [10, 10, 10], 256, 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=15)
    repeats = parser.parse_args().repeats
    torch.set_num_threads(1)
    graph = load_dataset(load_config(SETTINGS).dataset)
    topology = Topology(graph.indptr, graph.indices)
    rng = np.random.default_rng(0)
    seeds = [rng.choice(graph.num_nodes, SEEDS, replace=False) for _ in range(BATCHES)]
    samplers: dict[str, Sampler] = {
        "llcg_dist, neighbor": NeighborSampler(topology, FANOUTS),
        "llcg_dist, labor": NeighborSampler(topology, FANOUTS, "labor"),
        "DGL's fused sampler": DglNeighborSampler(topology, FANOUTS),
    }

    def draw(sampler: Sampler) -> None:
        for number, chosen in enumerate(seeds):
            sampler.sample(chosen, number)

    seconds = interleaved({name: partial(draw, sampler) for name, sampler in samplers.items()}, repeats)
    rows = []
    for name, sampler in samplers.items():
        batch = sampler.sample(seeds[0], 0)
        sizes = f"{len(batch.nodes):,}", f"{sum(len(block.indices) for block in batch.blocks):,}"
        rows.append([name, Spread.of([1e3 * second / BATCHES for second in seconds[name]]), *sizes])
    neighbor, labor, dgl = seconds.values()
    claims = [
        Claim("DGL's fused sampler / neighbor", ratio(dgl, neighbor), at_least=1.3),
        Claim("labor / neighbor", ratio(labor, neighbor), at_most=1.15),
    ]
    publish("sampling", table(["sampler", "ms a batch", "rows read", "edges"], rows), claims)


if __name__ == "__main__":
    main()
