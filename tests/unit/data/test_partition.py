"""Stores of parts: every node once, every count right, and a folder that is complete or not there."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from llcg_dist.config.compose import load_config
from llcg_dist.config.datasets import SyntheticConfig
from llcg_dist.config.model import ModelConfig
from llcg_dist.data import partition
from llcg_dist.data.atomic_files import write_json
from llcg_dist.data.graph import TRAIN
from llcg_dist.data.partition import ensure_store, store_path
from llcg_dist.data.store import parts_on_disk, read_shard
from llcg_dist.errors import UserError
from tests.helpers.graphs import rows_of
from tests.helpers.partitions import store_settings

ARRAYS = ("indptr", "indices", "features", "labels", "split")


@pytest.mark.parametrize("method", ["metis", "random"])
def test_one_part_keeps_the_order_of_nodes_and_edges(tmp_path: Path, method: str) -> None:
    store, manifest = ensure_store(store_settings(tmp_path, method, parts=1))
    for name in ARRAYS:
        assert (store / "part0" / f"{name}.npy").read_bytes() == (store / "global" / f"{name}.npy").read_bytes()
    assert manifest["cut_edges"] == 0


@pytest.fixture(scope="module", params=["metis", "random"])
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    return ensure_store(store_settings(tmp_path_factory.mktemp("parts"), request.param))


def test_every_node_is_in_exactly_one_part(built: tuple[Path, dict[str, Any]]) -> None:
    store, _ = built
    assert parts_on_disk(store) == [0, 1, 2]
    full = read_shard(store / "global")
    parts = [read_shard(store / f"part{p}") for p in range(3)]
    nodes = np.concatenate([part.extra["nodes"] for part in parts])
    assert sorted(nodes.tolist()) == list(range(300))
    for p, part in enumerate(parts):
        assert (full.extra["assignment"][part.extra["nodes"]] == p).all()
        for name in ("features", "labels", "split"):
            assert (getattr(part.graph, name) == getattr(full.graph, name)[part.extra["nodes"]]).all()
        part.graph.validate(f"part {p}")
        assert part.store_id == full.store_id


def test_the_manifest_counts_what_the_folders_hold(built: tuple[Path, dict[str, Any]]) -> None:
    store, manifest = built
    full = read_shard(store / "global")
    assignment = full.extra["assignment"].tolist()
    rows = rows_of(full.graph.indptr, full.graph.indices)
    edges = {(a, b) for a, row in enumerate(rows) for b in row if a < b}
    cut = {(a, b) for a, b in edges if assignment[a] != assignment[b]}
    assert 0 < manifest["cut_edges"] == len(cut)
    assert (manifest["num_nodes"], manifest["num_edges"], manifest["num_parts"]) == (300, len(edges), 3)
    for p, part in enumerate(manifest["parts"]):
        graph = read_shard(store / f"part{p}").graph
        assert part["nodes"] == graph.num_nodes
        assert part["edges"] == graph.num_edges == len({e for e in edges - cut if assignment[e[0]] == p})
        assert part["cut_edges"] == sum(p in (assignment[a], assignment[b]) for a, b in cut)
        assert part["train_nodes"] == int((graph.split == TRAIN).sum())
        assert part["label_counts"] == [int((graph.labels == c).sum()) for c in range(3)]
        on_disk = json.loads((store / f"part{p}" / "graph.json").read_text())
        assert manifest["shards"][f"part{p}"] == on_disk
    assert sum(part["nodes"] for part in manifest["parts"]) == 300
    assert sum(part["edges"] for part in manifest["parts"]) + len(cut) == len(edges)


def content(store: Path) -> dict[str, tuple[int, int]]:
    return {
        str(path.relative_to(store)): (path.stat().st_ino, path.stat().st_mtime_ns)
        for path in store.rglob("*")
        if path.is_file()
    }


def test_a_store_is_built_once(tmp_path: Path) -> None:
    said: list[str] = []
    config = store_settings(tmp_path / "deep" / "root", "random")
    store, manifest = ensure_store(config, said.append)
    assert any("3 parts (random)" in line for line in said)
    before = content(store)
    said.clear()
    again, same = ensure_store(config, said.append)
    assert (again, same, said) == (store, manifest, [])
    assert content(store) == before
    assert list((tmp_path / "deep" / "root").iterdir()) == [store]


def test_two_builds_write_the_same_bytes(built: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    store, manifest = built
    again, _ = ensure_store(store_settings(tmp_path, manifest["partitioner"]))
    assert again != store
    assert sorted(content(again)) == sorted(content(store))
    for name in content(store):
        assert (again / name).read_bytes() == (store / name).read_bytes(), name


@pytest.mark.parametrize(
    "change",
    [{"nodes": 301}, {"homophily": 0.6}, {"method": "random"}, {"parts": 2}, {"seed": 1}],
)
def test_other_settings_get_another_folder(tmp_path: Path, change: dict[str, Any]) -> None:
    assert store_path(store_settings(tmp_path, **change)) != store_path(store_settings(tmp_path))


def test_the_datasets_seed_is_apart_from_the_partitioners_and_gets_another_folder(tmp_path: Path) -> None:
    config = store_settings(tmp_path)
    other = replace(config, dataset=replace(config.dataset, seed=1))
    assert store_path(other) not in (store_path(config), store_path(store_settings(tmp_path, seed=1)))


def test_settings_that_do_not_change_the_parts_share_the_folder(tmp_path: Path) -> None:
    config = store_settings(tmp_path)
    others = replace(config, seed=5, model=ModelConfig("gcn"), num_rounds=3, run_dir="x")
    assert store_path(others) == store_path(config)


def test_the_folders_name(tmp_path: Path) -> None:
    default = replace(store_settings(tmp_path, parts=4), dataset=SyntheticConfig())
    assert store_path(default) == tmp_path / "synthetic-metis-4-0"
    name = store_path(store_settings(tmp_path, "random", seed=9)).name
    assert name.startswith("synthetic_")
    assert name.endswith("-random-3-9")


def test_a_store_of_other_data_is_refused(tmp_path: Path) -> None:
    config = store_settings(tmp_path, "random")
    store, manifest = ensure_store(config)
    write_json(store / "manifest.json", manifest | {"dataset": manifest["dataset"] | {"nodes": 299}})
    with pytest.raises(UserError, match=f"^{store}: built from other dataset settings"):
        ensure_store(config)


def test_half_a_store_is_never_taken_for_a_complete_one(tmp_path: Path) -> None:
    """A killed builder leaves its temporary folder, manifest and all: the next one builds, and clears it away."""
    config = store_settings(tmp_path, "random")
    path = store_path(config)
    left = tmp_path / f".{path.name}.tmp-0123abcd"
    (left / "part0").mkdir(parents=True)
    write_json(left / "manifest.json", {"schema_version": 1, "dataset": {}})
    said: list[str] = []
    store, manifest = ensure_store(config, said.append)
    assert any("3 parts (random)" in line for line in said)
    assert manifest["num_nodes"] == 300
    assert list(tmp_path.iterdir()) == [store]


def test_a_builder_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def disk_full(path: Path, content: Any) -> None:
        raise OSError(28, "No space left on device")

    root = tmp_path / "root"
    monkeypatch.setattr(partition, "write_json", disk_full)  # the manifest, last of all
    with pytest.raises(OSError, match="No space left"):
        ensure_store(store_settings(root, "random"))
    assert not root.exists() or list(root.iterdir()) == []


def test_a_folder_without_a_manifest_is_named(tmp_path: Path) -> None:
    """Half copied, or its manifest lost: it may hold what the user wants to keep."""
    config = store_settings(tmp_path, "random")
    path = store_path(config)
    (path / "part0").mkdir(parents=True)
    with pytest.raises(UserError, match=str(path)):
        ensure_store(config)
    assert list(tmp_path.iterdir()) == [path]


def refused(root: Path, **change: Any) -> str:
    with pytest.raises(UserError) as error:
        ensure_store(store_settings(root, **change))
    assert not root.exists() or list(root.iterdir()) == []
    assert "\n" not in str(error.value)
    return str(error.value)


def test_more_parts_than_nodes(tmp_path: Path) -> None:
    message = refused(tmp_path / "root", nodes=5, degree=2.0, parts=6)
    assert "cluster.num_machines=6" in message
    assert "5 nodes" in message


def test_a_part_without_training_nodes(tmp_path: Path) -> None:
    message = refused(tmp_path / "root", method="random", train_fraction=0.004)  # one node
    assert "partition=random: no training node in part" in message


def test_a_root_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=f"^partition.root={tmp_path / 'file'}"):
        ensure_store(store_settings(tmp_path / "file"))


def test_a_graph_without_edges_can_be_cut(tmp_path: Path) -> None:
    store, manifest = ensure_store(store_settings(tmp_path, degree=0.0))
    assert manifest["cut_edges"] == manifest["num_edges"] == 0
    read_shard(store / "part2").graph.validate("part 2")


def test_an_unknown_dataset_is_refused_however_it_is_named() -> None:
    with pytest.raises(UserError, match="dataset"):
        store_path(load_config(["dataset.name=nowhere"]))


def test_stores_of_different_graphs_have_different_names() -> None:
    def name(*overrides: str) -> str:
        return store_path(load_config([*overrides, "cluster.num_machines=8"])).name

    assert name("dataset=planetoid") == "planetoid_Cora-metis-8-0"
    assert name("dataset=planetoid", "dataset.name=PubMed") == "planetoid_PubMed-metis-8-0"
    assert name("dataset=ogbn-arxiv", "dataset.root=/elsewhere") == "ogbn-arxiv-metis-8-0"
    assert name("dataset=flickr") == "flickr-metis-8-0"
    special = {
        name("dataset=planetoid", "dataset.split=full"),
        name("dataset=heterophilous", "dataset.split=1"),
        name("dataset=heterophilous", "dataset.split=2"),
        name("dataset=flickr", "dataset.subset=100"),
    }
    assert len(special) == 4
    assert not special & {name("dataset=planetoid"), name("dataset=heterophilous"), name("dataset=flickr")}


@pytest.mark.parametrize(
    ("overrides", "name"),
    [
        ([], "synthetic-metis-4-0"),
        (["dataset.nodes=500"], "synthetic_e69a04be-metis-4-0"),
        (["dataset.homophily=0.3", "partition.order=parts"], "synthetic_a0126de1-metis_8775b258-4-0"),
    ],
)
def test_stores_of_version_1_are_found(overrides: list[str], name: str) -> None:
    """A setting that was added since has no part in the name unless it is used."""
    assert store_path(load_config(overrides)).name == name
    assert store_path(load_config([*overrides, "dataset.label_noise=0.1"])).name != name
