"""Small graphs cut into parts: settings for a store of them, and assignments that several processes compare."""

import importlib.util
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from llcg_dist.config.cluster import ClusterConfig
from llcg_dist.config.datasets import SyntheticConfig
from llcg_dist.config.partition import PartitionBackend, PartitionConfig, PartitionMethod
from llcg_dist.config.schema import Config
from llcg_dist.data.graph import Graph
from llcg_dist.data.parts import assign_parts
from llcg_dist.data.rows import Array
from tests.helpers.graphs import community_graph, graph_of

Case = tuple[str, int, Graph | None, str]
"""Arguments of `assigned`."""


def store_settings(root: Path, method: str = "metis", parts: int = 3, seed: int = 0, **dataset: Any) -> Config:
    """Settings of a store of 300 nodes, or of another synthetic graph."""
    small = SyntheticConfig(nodes=300, classes=3, degree=8.0, features=4)
    return Config(
        dataset=replace(small, **dataset),
        partition=PartitionConfig(PartitionMethod(method), seed, str(root)),
        cluster=ClusterConfig(num_machines=parts),
    )


def assigned(method: str, seed: int = 0, graph: Graph | None = None, backend: str = "auto") -> Array:
    """The part of every node, of four parts."""
    config = PartitionConfig(PartitionMethod(method), seed, backend=PartitionBackend(backend))
    return assign_parts(graph or community_graph(400), 4, config)


def cliques() -> Graph:
    """Four of ten nodes that touch nowhere: small and in pieces, where METIS is most easily led astray."""
    return graph_of([(c + 4 * i, c + 4 * j) for c in range(4) for i in range(10) for j in range(i)], 40)


BACKENDS = [name for name in ("dgl", "pymetis") if importlib.util.find_spec(name)]
COMMUNITIES: dict[str, Case] = {
    **{f"{backend}, seed {seed}": ("metis", seed, None, backend) for backend in BACKENDS for seed in (0, 1)},
    **{f"random, seed {seed}": ("random", seed, None, "auto") for seed in (0, 1)},
}
CLIQUES: dict[str, Case] = {f"{backend}, cliques": ("metis", 7, cliques(), backend) for backend in BACKENDS}
CASES = {**COMMUNITIES, **CLIQUES}


def assignments(cases: Iterable[str]) -> dict[str, list[int]]:
    """METIS starts a process for each, so there are few of them."""
    return {case: assigned(*CASES[case]).tolist() for case in cases}


if __name__ == "__main__":  # what the first calls in a process of its own find
    import json

    sys.stdout.write(json.dumps(assignments(CASES)))
