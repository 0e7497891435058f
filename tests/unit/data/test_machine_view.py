"""What a machine trains on, by what its method may read: its part, a halo, or the full topology with remote rows."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from llcg_dist.comm.remote_rows import FeatureTraffic, LoopbackRows
from llcg_dist.config.schema import Config, Verify
from llcg_dist.data.derived import DataAccess, Halo, read_derived
from llcg_dist.data.feature_rows import materialize
from llcg_dist.data.graph import TRAIN, neighbours
from llcg_dist.data.machine_view import part_view
from llcg_dist.data.partition import ensure_store
from llcg_dist.data.store import Shard, read_shard
from llcg_dist.data.views import View
from llcg_dist.errors import UserError
from tests.helpers.graphs import rows_of
from tests.helpers.partitions import store_settings

ACCESS_OF_PARTS = [access for access in DataAccess if access is not DataAccess.FULL_GRAPH]


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Config:
    made = store_settings(tmp_path_factory.mktemp("parts"), "random")
    for access in DataAccess:
        ensure_store(made, access=access)
    return made


@pytest.fixture(scope="module")
def store(config: Config) -> Path:
    return ensure_store(config)[0]


@pytest.fixture(scope="module")
def full(store: Path) -> Shard:
    return read_shard(store / "global", Verify.full)


def view(config: Config, store: Path, access: DataAccess, part: int = 1) -> tuple[View, FeatureTraffic]:
    shards = [read_shard(store / f"part{p}") for p in range(3)]
    traffic = FeatureTraffic()
    rows = LoopbackRows({p: torch.from_numpy(shard.graph.features) for p, shard in enumerate(shards)}, traffic)
    derived = read_derived(config, access, store, part, shards[part].store_id)
    return part_view(config, part, shards[part], derived, lambda own: rows), traffic


def global_numbers(config: Config, store: Path, access: DataAccess, part: int = 1) -> np.ndarray:
    """Of the nodes of a view, in its own order."""
    own = read_shard(store / f"part{part}").extra["nodes"]
    if access is DataAccess.PART_AND_HALO:
        return np.concatenate([own, np.load(store / f"part{part}/halo/0.1/nodes.npy")])
    return own if access is DataAccess.PART else np.arange(300)


@pytest.mark.parametrize("access", ACCESS_OF_PARTS)
def test_a_view_has_the_graphs_own_edges_features_and_labels(
    config: Config, store: Path, full: Shard, access: DataAccess
) -> None:
    found, _ = view(config, store, access)
    numbers = global_numbers(config, store, access)
    assert found.topology.num_nodes == len(numbers)
    inside = set(numbers.tolist())
    for node, row in enumerate(rows_of(found.topology.indptr, found.topology.indices)):
        expected = [n for n in neighbours(full.graph, numbers[node : node + 1]).tolist() if n in inside]
        assert sorted(numbers[row].tolist()) == sorted(expected)
    some = torch.randperm(len(numbers), generator=torch.Generator().manual_seed(0))[:40].int()
    assert torch.equal(materialize(found.features(some)), torch.from_numpy(full.graph.features[numbers[some]]))
    training = torch.from_numpy(found.train_nodes)
    assert torch.equal(found.labels(training), torch.from_numpy(full.graph.labels[numbers[found.train_nodes]]))


@pytest.mark.parametrize("access", ACCESS_OF_PARTS)
def test_training_nodes_are_the_parts_own_whatever_it_reads(
    config: Config, store: Path, full: Shard, access: DataAccess
) -> None:
    own = (full.extra["assignment"] == 1) & (full.graph.split == TRAIN)
    found, _ = view(config, store, access)
    assert global_numbers(config, store, access)[found.train_nodes].tolist() == np.flatnonzero(own).tolist()


def test_remote_rows_are_counted_and_own_rows_are_not(config: Config, store: Path, full: Shard) -> None:
    found, traffic = view(config, store, DataAccess.FULL_TOPOLOGY)
    nodes = torch.arange(50, 120)
    remote = int((full.extra["assignment"][50:120] != 1).sum())
    found.features(nodes)
    taken = traffic.take()
    assert (taken.pairs, taken.id_bytes, taken.row_bytes) == (2, 2 * 8 + remote * 4, remote * 4 * 4)
    found.features(torch.from_numpy(found.train_nodes))
    assert traffic.take().row_bytes == 0


def test_parts_whose_numbers_are_those_of_another_graph(config: Config, store: Path) -> None:
    """What each folder holds is whole, and they do not belong together."""
    shard, nobody = read_shard(store / "part1"), LoopbackRows({}, FeatureTraffic())
    outside = replace(shard, extra={"nodes": shard.extra["nodes"] + 300})
    topology = read_derived(config, DataAccess.FULL_TOPOLOGY, store, 1, shard.store_id)
    checked = replace(config, verify=Verify.full)
    with pytest.raises(UserError, match="part1: nodes does not hold 100 numbers from 0 to 299"):
        part_view(checked, 1, outside, topology, lambda own: nobody)
    halo = read_derived(config, DataAccess.PART_AND_HALO, store, 1, shard.store_id)
    assert isinstance(halo, Halo)
    with pytest.raises(UserError, match="part1/halo: it does not fit to the part"):
        part_view(config, 1, shard, replace(halo, features=halo.features[1:]), lambda own: nobody)
