"""What some methods read besides their part: halos, the whole topology, remote rows and their cache."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from llcg_dist.comm.loopback import LoopbackRows
from llcg_dist.comm.remote_rows import FeatureTraffic
from llcg_dist.config.schema import Config
from llcg_dist.data.cut import correction_nodes, cut_edge_counts, cut_edge_ends
from llcg_dist.data.derived import DataAccess, halo_bytes, halo_nodes, read_derived, read_halo, read_topology
from llcg_dist.data.feature_cache import CachedRows
from llcg_dist.data.feature_rows import materialize
from llcg_dist.data.graph import TRAIN, UNUSED, neighbours
from llcg_dist.data.machine_view import part_view
from llcg_dist.data.partition import ensure_store
from llcg_dist.data.store import Shard, read_shard
from llcg_dist.data.views import View
from llcg_dist.errors import UserError
from tests.helpers.graphs import community_graph, graph_of, rows_of
from tests.unit.data.test_partition import settings

PATH = graph_of([(i, i + 1) for i in range(9)], 10)


@pytest.mark.parametrize(("count", "expected"), [(0, []), (1, [3]), (3, [3, 4, 5]), (99, [3, 4, 5, 6, 7, 8, 9])])
def test_a_halo_takes_the_nearest_first(count: int, expected: list[int]) -> None:
    assert halo_nodes(PATH, np.array([0, 1, 2]), count, np.random.default_rng(0)).tolist() == expected


def test_of_the_last_ring_a_halo_takes_a_seeded_sample() -> None:
    star = graph_of([(0, i) for i in range(1, 40)], 40)
    drawn = [halo_nodes(star, np.array([0]), 5, np.random.default_rng(seed)) for seed in (1, 1, 2)]
    assert drawn[0].tolist() == drawn[1].tolist() != drawn[2].tolist()
    assert all(len(set(nodes)) == 5 and 0 not in nodes for nodes in drawn)


@given(st.integers(0, 60), st.integers(0, 3))
def test_a_halo_lies_outside_its_part(count: int, seed: int) -> None:
    graph = community_graph(90)
    part = np.flatnonzero(np.arange(90) % 3 == 0)
    found = halo_nodes(graph, part, count, np.random.default_rng(seed))
    assert len(found) == count
    assert not set(found) & set(part)
    assert found.tolist() == sorted(set(found))


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Config:
    made = settings(tmp_path_factory.mktemp("parts"), "random")
    for access in DataAccess:
        ensure_store(made, access=access)
    return made


@pytest.fixture(scope="module")
def store(config: Config) -> Path:
    return ensure_store(config)[0]


@pytest.fixture(scope="module")
def whole(store: Path) -> Shard:
    return read_shard(store / "global", "full")


def view(config: Config, store: Path, access: DataAccess, part: int = 1) -> tuple[View, FeatureTraffic]:
    shards = [read_shard(store / f"part{p}") for p in range(3)]
    traffic = FeatureTraffic()
    rows = LoopbackRows([torch.from_numpy(shard.graph.features) for shard in shards], traffic)
    extras = read_derived(config, access, store, part, shards[part].store_id)
    return part_view(config, part, shards[part], extras, lambda own: rows), traffic


def global_numbers(config: Config, store: Path, access: DataAccess, part: int = 1) -> np.ndarray:
    """Of the nodes of a view, in its own order."""
    own = read_shard(store / f"part{part}").extra["nodes"]
    if access is DataAccess.PART_AND_HALO:
        return np.concatenate([own, np.load(store / f"part{part}/halo/0.1/nodes.npy")])
    return own if access is DataAccess.PART else np.arange(300)


@pytest.mark.parametrize("access", DataAccess)
def test_a_view_has_the_graphs_own_edges_features_and_labels(
    config: Config, store: Path, whole: Shard, access: DataAccess
) -> None:
    found, _ = view(config, store, access)
    numbers = global_numbers(config, store, access)
    assert found.topology.num_nodes == len(numbers)
    inside = set(numbers.tolist())
    for node, row in enumerate(rows_of(found.topology.indptr, found.topology.indices)):
        expected = [n for n in neighbours(whole.graph, numbers[node : node + 1]).tolist() if n in inside]
        assert sorted(numbers[row].tolist()) == sorted(expected)
    some = torch.randperm(len(numbers), generator=torch.Generator().manual_seed(0))[:40].int()
    assert torch.equal(materialize(found.features(some)), torch.from_numpy(whole.graph.features[numbers[some]]))
    training = torch.from_numpy(found.train_nodes)
    assert torch.equal(found.labels(training), torch.from_numpy(whole.graph.labels[numbers[found.train_nodes]]))


@pytest.mark.parametrize("access", DataAccess)
def test_training_nodes_are_the_parts_own_whatever_it_reads(
    config: Config, store: Path, whole: Shard, access: DataAccess
) -> None:
    own = (whole.extra["assignment"] == 1) & (whole.graph.split == TRAIN)
    found, _ = view(config, store, access)
    assert global_numbers(config, store, access)[found.train_nodes].tolist() == np.flatnonzero(own).tolist()


def test_remote_rows_are_counted_and_own_rows_are_not(config: Config, store: Path, whole: Shard) -> None:
    found, traffic = view(config, store, DataAccess.FULL_TOPOLOGY)
    nodes = torch.arange(50, 120)
    remote = int((whole.extra["assignment"][50:120] != 1).sum())
    found.features(nodes)
    taken = traffic.take()
    assert (taken.pairs, taken.id_bytes, taken.row_bytes) == (2, 2 * 8 + remote * 4, remote * 4 * 4)
    found.features(torch.from_numpy(found.train_nodes))
    assert traffic.take().row_bytes == 0


def test_halo_bytes_by_hand(config: Config, store: Path) -> None:
    for part, size in enumerate(halo_bytes(config, store)):
        shard = read_shard(store / f"part{part}")
        halo = read_halo(config, store, part, shard.store_id)
        count, more_edges = len(halo.features), len(halo.topology.indices) - len(shard.graph.indices)
        assert count == 10  # a tenth of 100
        assert more_edges > 0
        assert size == count * (4 * 4 + 4) + more_edges * 4


def test_building_again_changes_nothing(config: Config, store: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in store.rglob("*")}
    for access in DataAccess:
        ensure_store(config, access=access)
    assert {path: path.stat().st_mtime_ns for path in store.rglob("*")} == before


def test_what_is_missing_says_how_to_build_it(tmp_path: Path) -> None:
    made = settings(tmp_path, "random")
    path, _ = ensure_store(made)
    with pytest.raises(UserError, match="topology.*llcg partition algorithm=ggs"):
        read_topology(path, "any", "full")
    with pytest.raises(
        UserError, match="halo.*llcg partition algorithm=subgraph_approx algorithm.storage_overhead=0.1"
    ):
        read_halo(made, path, 0, "any")


def test_another_stores_topology_is_refused(store: Path) -> None:
    with pytest.raises(UserError, match="another store"):
        read_topology(store, "other", "sizes")


class Counting:
    """Rows whose values tell which they are; counts what is asked for."""

    def __init__(self) -> None:
        self.asked = 0

    def fetch(self, wanted: list[Tensor]) -> list[Tensor]:
        self.asked += sum(len(numbers) for numbers in wanted)
        return [numbers[:, None].float() * 10 + part for part, numbers in enumerate(wanted)]


batches = st.lists(st.tuples(st.sets(st.integers(0, 9)), st.sets(st.integers(0, 9))), min_size=1, max_size=12)


@given(batches, st.integers(0, 12))
def test_a_cache_answers_as_its_source_and_keeps_its_limit(
    asked: list[tuple[set[int], set[int]]], rows_kept: int
) -> None:
    source = Counting()
    cache = CachedRows(source, np.array([0] * 10 + [1] * 10), limit=rows_kept * 4 + 3)
    for wanted in asked:
        numbers = [torch.tensor(sorted(of_part), dtype=torch.int32) for of_part in wanted]
        for found, expected in zip(cache.fetch(numbers), Counting().fetch(numbers), strict=True):
            assert torch.equal(found, expected)
    distinct = {(part, n) for wanted in asked for part, of_part in enumerate(wanted) for n in of_part}
    total = sum(len(of_part) for wanted in asked for of_part in wanted)
    assert len(distinct) <= source.asked <= total
    if rows_kept == 0:
        assert source.asked == total


def test_the_most_requested_rows_stay() -> None:
    source = Counting()
    cache = CachedRows(source, np.zeros(10, np.int64), limit=4)  # one row
    for number, asked in ((1, 1), (1, 0), (2, 1), (1, 0), (3, 1), (1, 0)):
        before = source.asked
        cache.fetch([torch.tensor([number])])
        assert source.asked - before == asked


def test_ends_of_cut_edges() -> None:
    parts = np.array([0] * 4 + [1] * 6)
    assert np.flatnonzero(cut_edge_ends(PATH, parts)).tolist() == [3, 4]
    graph = community_graph(90)
    assert cut_edge_ends(graph, np.zeros(90, int)).sum() == 0
    spread = np.arange(90) % 3
    assert (cut_edge_ends(graph, spread).sum() > 0) == (cut_edge_counts(graph, spread, 3).sum() > 0)


def test_correction_nodes() -> None:
    parts = np.array([0] * 4 + [1] * 6)
    only_training = dataclasses.replace(PATH, split=np.full(10, TRAIN, np.int8))
    assert correction_nodes("uniform", only_training, parts) is None
    assert correction_nodes("cut_edges", only_training, parts).tolist() == [3, 4]
    one = np.array([TRAIN, UNUSED, TRAIN, UNUSED, TRAIN, TRAIN, UNUSED, UNUSED, UNUSED, UNUSED], np.int8)
    assert correction_nodes("cut_edges", dataclasses.replace(PATH, split=one), parts).tolist() == [4]
    with pytest.raises(UserError, match="no training node has a cut edge"):
        correction_nodes("cut_edges", only_training, np.zeros(10, int))
