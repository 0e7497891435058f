"""The largest graph that a machine of 1, 4 or 16 GB can take part in, by the number of machines.

    python -m studies.largest

Computed by the formulas of `llcg doctor --stages`, which bench.scale compares with what it measures: graphs with the
degree, features and classes of ogbn-products, the local step of bench.scale, one machine on a host. A machine's part is
mapped from a file: it is counted as if it had to fit, so that nothing is read twice.
"""

from functools import cache
from pathlib import Path

from bench.harness import publish, table
from bench.scale_stages import EDGES, NODES, TRAINING
from matplotlib import rc_context
from matplotlib.figure import Figure

from llcg_dist.algorithms.base import Algorithm
from llcg_dist.algorithms.registry import build_algorithm
from llcg_dist.config.compose import load_config
from llcg_dist.doctor.memory import LayerCosts
from llcg_dist.doctor.sizes import GraphSize
from llcg_dist.doctor.training_stages import machine_host_bytes
from llcg_dist.models.registry import structure
from llcg_dist.report.style import SETTINGS

MACHINES = (1, 8, 64, 512)
GIGABYTES = (1, 4, 16)
_FEATURES, _CLASSES, _TRAIN_SHARE = 100, 47, 0.08
PUBLISHED = {"ogbn-products": NODES, "papers100M": 111_059_956}
_TICKS = {"1 million": 1e6, "10 million": 1e7, "100 million": 1e8, "1 billion": 1e9, "10 billion": 1e10}
_PICTURE = Path(__file__).parent.parent / "docs" / "figures" / "largest.svg"


def main() -> None:
    largest = {memory: [largest_graph(memory * 1e9, machines) for machines in MACHINES] for memory in GIGABYTES}
    rows = [[f"{memory} GB", *(f"{nodes / 1e6:,.1f} M" for nodes in found)] for memory, found in largest.items()]
    publish("largest", table(["a machine's memory", *(f"P = {machines}" for machines in MACHINES)], rows), [])
    figure = Figure(figsize=(5.2, 3.2), layout="constrained", facecolor="white")
    with rc_context(SETTINGS):
        axes = figure.add_subplot(xlabel="machines", ylabel="nodes of the largest graph", xscale="log", yscale="log")
        for (memory, found), colour in zip(largest.items(), ("#b6d4f2", "#5a9bd8", "#1f5f9e"), strict=True):
            axes.plot(MACHINES, found, color=colour, marker="o", label=f"{memory} GB each")
        for name, nodes in PUBLISHED.items():
            axes.axhline(nodes, color="#8c959f", linewidth=0.8, linestyle="--")
            axes.annotate(
                name, (MACHINES[-1], nodes), (0, 3), textcoords="offset points", color="#57606a", fontsize=8, ha="right"
            )
        axes.set_xticks(MACHINES, map(str, MACHINES))
        axes.set_yticks(list(_TICKS.values()), list(_TICKS))
        axes.minorticks_off()
        axes.legend(loc="upper left")
        figure.savefig(_PICTURE, metadata={"Date": None})


def largest_graph(memory: float, machines: int) -> int:
    """Nodes of the largest graph of which one of so many machines holds its part in this memory, by bisection."""
    fits, too_large = 0, int(1e12)
    while too_large - fits > fits // 1000 + 1:
        nodes = (fits + too_large) // 2
        if memory_of(nodes, machines) <= memory:
            fits = nodes
        else:
            too_large = nodes
    return fits


@cache
def algorithm_of(machines: int) -> Algorithm:
    return build_algorithm(load_config([*TRAINING, f"cluster.num_machines={machines}"]))


def memory_of(nodes: int, machines: int) -> int:
    """Bytes that one machine holds, alone on its host."""
    algorithm = algorithm_of(machines)
    model = algorithm.config.model
    costs = LayerCosts(structure(model).layers(_FEATURES, model.hidden, _CLASSES))
    size = GraphSize(nodes, round(nodes * EDGES / NODES), _FEATURES, _CLASSES, _TRAIN_SHARE)
    return machine_host_bytes(algorithm, size, costs)


if __name__ == "__main__":
    main()
