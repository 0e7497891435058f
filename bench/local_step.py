"""How long a machine's local step takes, against the same step in other hands:

    python -m bench.local_step [--repeats 9] [--steps 4]

One thread, 3 layers, batches of 256, fan-out 10, at hidden width 256 and 64; see bench/step_contenders.py.
"""

import argparse
from functools import partial

import torch

from bench.harness import Claim, Spread, interleaved, publish, ratio, table
from bench.step_contenders import dgl_loop, floor, ours, pyg_over_edges
from llcg_dist.config import load_config
from llcg_dist.data.datasets.synthetic import generate
from llcg_dist.data.graph import Graph
from llcg_dist.process import keep_freed_memory
from llcg_dist.schema import Config

SETTINGS = [
    "dataset.nodes=100000", "dataset.features=128", "dataset.degree=30", "dataset.classes=40", "model.layers=3",
    "train.local_batch_size=256",
]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--steps", type=int, default=4)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    keep_freed_memory()
    graph = generate(load_config(SETTINGS).dataset)
    rows, claims = [], []
    for hidden in (256, 64):
        config = load_config([*SETTINGS, f"model.hidden={hidden}"])
        seconds = measure(config, graph, arguments.repeats, arguments.steps)
        rows += [[hidden, name, Spread.of([1e3 * value for value in values])] for name, values in seconds.items()]
        claims += claims_of(hidden, seconds)
    publish("local_step", table(["hidden", "step", "ms, median (lowest to highest)"], rows), claims)


def measure(config: Config, graph: Graph, repeats: int, steps: int) -> dict[str, list[float]]:
    """Seconds of a step, by contender and turn."""
    contenders = {
        "llcg_dist": ours(config, graph),
        "llcg_dist, LABOR": ours(config, graph, "labor"),
        "DGL's own loop": dgl_loop(config, graph),
        "PyG over edge_index": pyg_over_edges(config, graph),
        "floor": floor(config, graph),
    }
    turns = {name: partial(contender, steps) for name, contender in contenders.items()}
    return {name: [value / steps for value in values] for name, values in interleaved(turns, repeats).items()}


def claims_of(hidden: int, seconds: dict[str, list[float]]) -> list[Claim]:
    step, labor, dgl, pyg, least = seconds.values()
    return [
        Claim(f"hidden {hidden}: DGL's loop / llcg_dist", ratio(dgl, step), at_least=1.15),
        Claim(f"hidden {hidden}: PyG over edge_index / llcg_dist", ratio(pyg, step), at_least=1.7),
        Claim(f"hidden {hidden}: llcg_dist / floor", ratio(step, least), at_most=1.3),
        Claim(f"hidden {hidden}: DGL's loop / llcg_dist with LABOR", ratio(dgl, labor), at_least=1.6),
    ]


if __name__ == "__main__":
    main()
