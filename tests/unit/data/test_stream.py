"""partition=stream: nearly as few cut edges as METIS, balanced, the same bits, over any kind of graph."""

import hashlib
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from llcg_dist.config.datasets import SyntheticConfig
from llcg_dist.config.partition import Balance, PartitionBackend, PartitionConfig, PartitionMethod
from llcg_dist.data import parts as parts_module
from llcg_dist.data.balance import node_types
from llcg_dist.data.csr import Topology
from llcg_dist.data.cut import cut_edge_counts
from llcg_dist.data.datasets import load_dataset
from llcg_dist.data.graph import TRAIN, Graph
from llcg_dist.data.metis import Metis
from llcg_dist.data.parts import assign_parts, settle_method
from llcg_dist.data.rows import Array
from llcg_dist.data.stream import stream_parts
from tests.helpers.graphs import graph_of
from tests.helpers.partitions import cliques
from tests.helpers.real_graphs import REAL_GRAPHS, real_topology

COMMUNITIES = load_dataset(SyntheticConfig(nodes=12_000, classes=24, degree=14.0, homophily=0.7, features=2))


def stream(graph: Graph, num_parts: int, seed: int = 0, balance: Balance = Balance.none) -> Array:
    return assign_parts(graph, num_parts, PartitionConfig(PartitionMethod.stream, seed, balance=balance))


def cut(graph: Graph, parts: Array) -> int:
    return int(cut_edge_counts(graph, parts, int(parts.max()) + 1).sum()) // 2


def with_topology(topology: Topology) -> Graph:
    nothing = np.zeros(topology.num_nodes, np.int8)
    return Graph(topology.indptr, topology.indices, nothing[:, None], nothing, nothing, 1)


@pytest.mark.parametrize("num_parts", [2, 8, 30])
def test_communities_are_cut_about_as_metis_cuts_them(num_parts: int) -> None:
    parts = stream(COMMUNITIES, num_parts)
    metis = assign_parts(COMMUNITIES, num_parts, PartitionConfig(PartitionMethod.metis))
    assert cut(COMMUNITIES, parts) <= 1.25 * cut(COMMUNITIES, metis)
    assert np.bincount(parts, minlength=num_parts).max() <= np.ceil(1.03 * COMMUNITIES.num_nodes / num_parts)


@pytest.mark.parametrize("name", REAL_GRAPHS)
def test_real_graphs_are_cut_about_as_metis_cuts_them(name: str, tmp_path: Path) -> None:
    graph = with_topology(real_topology(name, tmp_path))
    metis = assign_parts(graph, 8, PartitionConfig(PartitionMethod.metis))
    for seed in (0, 1):
        parts = stream(graph, 8, seed)
        assert cut(graph, parts) <= 1.25 * cut(graph, metis)
        assert np.bincount(parts, minlength=8).max() <= np.ceil(1.03 * graph.num_nodes / 8)


def test_nothing_is_cut_where_nothing_need_be_cut() -> None:
    assert cut_edge_counts(cliques(), stream(cliques(), 4), 4).tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("balance", [Balance.train, Balance.labels])
def test_training_nodes_and_their_labels_are_balanced(balance: Balance) -> None:
    parts, types = stream(COMMUNITIES, 4, balance=balance), node_types(COMMUNITIES, {balance})
    assert types is not None
    for kind in np.unique(types):
        counts = np.bincount(parts[types == kind], minlength=4)
        assert counts.max() <= np.ceil(1.03 * counts.sum() / 4)
    random = assign_parts(COMMUNITIES, 4, PartitionConfig(PartitionMethod.random))
    assert cut(COMMUNITIES, parts) < 0.95 * cut(COMMUNITIES, random)


def test_labels_of_validation_and_test_nodes_have_no_influence() -> None:
    others = COMMUNITIES.split != TRAIN
    labels = COMMUNITIES.labels.copy()
    labels[others] = np.random.default_rng(0).permutation(labels[others])
    changed = replace(COMMUNITIES, labels=labels)
    assert np.array_equal(stream(COMMUNITIES, 4, 0, Balance.labels), stream(changed, 4, 0, Balance.labels))


FRESH = """
import hashlib
from tests.unit.data.test_stream import COMMUNITIES, stream
print(hashlib.sha256(stream(COMMUNITIES, 5, 3).tobytes()).hexdigest())
"""


def test_the_same_parts_in_any_process_and_others_for_another_seed() -> None:
    here = hashlib.sha256(stream(COMMUNITIES, 5, 3).tobytes()).hexdigest()
    done = subprocess.run([sys.executable, "-c", FRESH], capture_output=True, text=True, timeout=240, check=True)
    assert done.stdout.strip() == here
    assert here != hashlib.sha256(stream(COMMUNITIES, 5, 4).tobytes()).hexdigest()


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_wide_indices_lead_to_the_same_parts(dtype: type) -> None:
    topology = Topology(COMMUNITIES.indptr.astype(dtype), COMMUNITIES.indices.astype(dtype))
    assert np.array_equal(stream_parts(topology, 6, 1), stream(COMMUNITIES, 6, 1))


HUB = graph_of([(0, leaf) for leaf in range(1, 4000)], 4000)
"""Once the hub's cluster is full, a leaf has nowhere to go but to another leaf."""
NO_EDGES = graph_of([], 3000)
PATH = graph_of([(node, node + 1) for node in range(4999)], 5000)
ALMOST_EMPTY = graph_of([(2 * i, 2 * i + 1) for i in range(1000)], 4000)


@pytest.mark.parametrize("graph", [HUB, NO_EDGES, PATH, ALMOST_EMPTY], ids=["hub", "no edges", "path", "pairs"])
@pytest.mark.parametrize("most_entries", [1 << 23, 4000, 0], ids=["much room", "little room", "no room"])
def test_odd_graphs_are_cut_into_balanced_parts(graph: Graph, most_entries: int) -> None:
    """Little room: clusters are merged again and again. No room at all: METIS is left out."""
    parts = stream_parts(Topology(graph.indptr, graph.indices), 4, 0, most_entries=most_entries)
    assert np.bincount(parts, minlength=4).max() <= np.ceil(1.03 * graph.num_nodes / 4)
    if graph is PATH:
        assert cut(graph, parts) <= 200
    if graph is ALMOST_EMPTY:
        assert cut(graph, parts) <= 10


def test_clusters_of_clusters_cost_little() -> None:
    """Room for a graph of a few hundred clusters only."""
    topology = Topology(COMMUNITIES.indptr, COMMUNITIES.indices)
    few, many = (stream_parts(topology, 4, 0, most_entries=entries) for entries in (1 << 14, 1 << 23))
    assert not np.array_equal(few, many)
    assert cut(COMMUNITIES, few) <= 1.25 * cut(COMMUNITIES, many)


def test_auto_takes_metis_where_memory_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    config, said = PartitionConfig(PartitionMethod.auto, backend=PartitionBackend.pymetis), list[str]()
    monkeypatch.setattr(parts_module, "memory", lambda: (64 << 30, 24_000_000_000))
    assert settle_method(config, 124_000_000, said.append).method == PartitionMethod.metis
    assert settle_method(config, 1_240_000_000, said.append).method == PartitionMethod.stream
    assert said == [
        "partition=auto: metis; METIS needs about 16.9 GB, 24.0 GB are free",
        "partition=auto: stream; METIS needs about 168.6 GB, 24.0 GB are free",
    ]
    measured = {"dgl": 9.24e9, "pymetis": 16.54e9}  # anonymous, 123 million entries: python -m bench.metis_memory
    for name, held in measured.items():
        assert Metis(name).memory(123_000_000) == pytest.approx(held, rel=0.03)
    plain = PartitionConfig(PartitionMethod.random)
    assert settle_method(plain, 10, said.append) is plain
