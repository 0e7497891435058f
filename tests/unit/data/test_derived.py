"""What some methods read besides their part, kept in the store: halos and the full topology."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llcg_dist.config.schema import Config, Verify
from llcg_dist.data import partition
from llcg_dist.data.derived import DataAccess, halo_bytes, halo_nodes, read_halo, read_topology
from llcg_dist.data.partition import ensure_store
from llcg_dist.data.store import read_shard, write_arrays
from llcg_dist.errors import UserError
from tests.helpers.graphs import community_graph, graph_of
from tests.helpers.partitions import store_settings

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
    made = store_settings(tmp_path_factory.mktemp("parts"), "random")
    for access in DataAccess:
        ensure_store(made, access=access)
    return made


@pytest.fixture(scope="module")
def store(config: Config) -> Path:
    return ensure_store(config)[0]


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
    made = store_settings(tmp_path, "random")
    path, _ = ensure_store(made)
    with pytest.raises(UserError, match="topology.*llcg partition algorithm=ggs"):
        read_topology(path, "any", Verify.full)
    with pytest.raises(
        UserError, match="halo.*llcg partition algorithm=subgraph_approx algorithm.storage_overhead=0.1"
    ):
        read_halo(made, path, 0, "any")


def test_another_stores_topology_is_refused(store: Path) -> None:
    with pytest.raises(UserError, match="another store"):
        read_topology(store, "other", Verify.sizes)


@pytest.mark.parametrize(
    ("name", "place", "value", "rule"),
    [
        ("indices", 5, 300, "an edge ends outside the nodes 0..299"),
        ("indptr", 3, 2**30, "indptr is not ascending"),
        ("indptr", -1, 7, "the arrays do not fit together"),
        ("owner", 4, -1, "owner does not hold 300 numbers from 0 to 299"),
        ("position", 4, 300, "position does not hold 300 numbers from 0 to 299"),
    ],
)
def test_a_topology_that_leads_out_of_its_arrays(
    config: Config, tmp_path: Path, name: str, place: int, value: int, rule: str
) -> None:
    """With the right checksums, as a stranger would write it."""
    store, _ = ensure_store(config)
    whole = read_topology(store, read_shard(store / "global").store_id, Verify.full)
    arrays = {"indptr": whole.topology.indptr, "indices": whole.topology.indices}
    arrays = {key: array.copy() for key, array in {**arrays, "owner": whole.owner, "position": whole.position}.items()}
    arrays[name][place] = value
    write_arrays(tmp_path / "topology", arrays, "store-1")
    with pytest.raises(UserError, match=f"topology: {rule}"):
        read_topology(tmp_path, "store-1", Verify.full)


@pytest.mark.parametrize("access", list(DataAccess))
def test_what_is_there_needs_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, access: DataAccess) -> None:
    """Nor a folder that may be written to."""
    config = store_settings(tmp_path, "random")
    built = ensure_store(config, access=access)
    monkeypatch.setattr(partition, "_lock", None)
    assert ensure_store(config, access=access) == built
