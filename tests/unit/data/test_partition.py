"""Parts: the same bits every time, every node once, and a store that is whole or not there."""

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from llcg_dist.config.datasets import SyntheticConfig
from llcg_dist.config.schema import ClusterConfig, Config, ModelConfig, PartitionConfig
from llcg_dist.data import partition
from llcg_dist.data.atomic_files import write_json
from llcg_dist.data.cut import cut_edge_counts, label_skew
from llcg_dist.data.graph import TRAIN, Graph
from llcg_dist.data.partition import assign_parts, ensure_store, store_path
from llcg_dist.data.rows import Array
from llcg_dist.data.store import parts_on_disk, read_shard
from llcg_dist.errors import UserError
from tests.helpers.graphs import community_graph, graph_of, rows_of

ARRAYS = ("indptr", "indices", "features", "labels", "split")


def settings(root: Path, method: str = "metis", parts: int = 3, seed: int = 0, **dataset: Any) -> Config:
    small = SyntheticConfig(nodes=300, classes=3, degree=8.0, features=4)
    return Config(
        dataset=replace(small, **dataset),
        partition=PartitionConfig(method, seed, str(root)),
        cluster=ClusterConfig(num_machines=parts),
    )


def assigned(method: str, seed: int = 0, graph: Graph | None = None) -> Array:
    return assign_parts(graph or community_graph(400), 4, PartitionConfig(method, seed))


def cliques() -> Graph:
    """Four of ten nodes that touch nowhere: small and in pieces, where METIS is most easily led astray."""
    return graph_of([(c + 4 * i, c + 4 * j) for c in range(4) for i in range(10) for j in range(i)], 40)


KEYS = {f"{method}, seed {seed}": (method, seed, None) for method in ("metis", "random") for seed in (0, 1)}
CLIQUES = {f"metis of cliques, seed {seed}": ("metis", seed, cliques()) for seed in (0, 7)}
CASES = KEYS | CLIQUES


def assignments(keys: Iterable[str]) -> dict[str, list[int]]:
    """METIS starts a process, so there are few of them, and several tests look at each."""
    return {key: assigned(*CASES[key]).tolist() for key in keys}


@pytest.fixture(scope="module")
def starting_process() -> Iterator[subprocess.Popen[str]]:
    """Looks for parts while this process does."""
    program = "import json; from tests.unit.data.test_partition import *; print(json.dumps(assignments(CASES)))"
    command = [sys.executable, "-c", program]
    repository, pipe = Path(__file__).parents[3], subprocess.PIPE
    with subprocess.Popen(command, cwd=repository, stdout=pipe, stderr=pipe, text=True) as process:
        yield process
        process.kill()


@pytest.fixture(scope="module")
def fresh_process(
    starting_process: subprocess.Popen[str], after_other_work: dict[str, list[int]]
) -> dict[str, list[int]]:
    """What the first calls in a process of its own find."""
    found, errors = starting_process.communicate(timeout=120)
    assert starting_process.returncode == 0, errors
    return json.loads(found.splitlines()[-1])


@pytest.fixture(scope="module")
def after_other_work(starting_process: subprocess.Popen[str]) -> dict[str, list[int]]:
    """What calls find in this process: other work done, memory and environment full of other things, another order."""
    torch.randn(300, 300) @ torch.randn(300, 300)
    np.random.seed(3)
    torch.manual_seed(3)
    rubbish = [np.full(1 << k, 0xAB, np.uint8) for k in range(4, 22) for _ in range(3)]
    del rubbish
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RUBBISH", "\xab" * 50_000)
        return assignments(reversed(CASES))


@pytest.mark.parametrize("key", CASES)
def test_the_same_parts_in_any_process_whatever_ran_before(
    fresh_process: dict[str, list[int]], after_other_work: dict[str, list[int]], key: str
) -> None:
    """Every store built from the same settings must have the same parts, on whichever host."""
    assert after_other_work[key] == fresh_process[key]


def test_the_seed_changes_the_parts(after_other_work: dict[str, list[int]]) -> None:
    assert len({tuple(after_other_work[key]) for key in KEYS}) == 4


@pytest.mark.parametrize("key", KEYS)
def test_parts_are_balanced(after_other_work: dict[str, list[int]], key: str) -> None:
    sizes = np.bincount(after_other_work[key], minlength=4)
    assert sizes.sum() == 400
    assert sizes.max() <= 1.1 * 100
    if key.startswith("random"):
        assert sizes.tolist() == [100] * 4


@pytest.mark.parametrize("key", CLIQUES)
def test_metis_cuts_nothing_where_nothing_need_be_cut(after_other_work: dict[str, list[int]], key: str) -> None:
    parts = np.array(after_other_work[key])
    assert cut_edge_counts(cliques(), parts, 4).tolist() == [0, 0, 0, 0]
    assert np.bincount(parts, minlength=4).tolist() == [10, 10, 10, 10]


@pytest.mark.parametrize("seed", [0, 3])
def test_metis_finds_what_belongs_together(seed: int) -> None:
    """Four cliques of 25 in a ring, numbered in turns: only the ring is cut, whatever order METIS meets them in."""
    inside = [(c + 4 * i, c + 4 * j) for c in range(4) for i in range(25) for j in range(i)]
    ring = [(c, (c + 1) % 4 + 4) for c in range(4)]
    graph = graph_of(inside + ring, 100)
    assignment = assigned("metis", seed, graph)
    assert cut_edge_counts(graph, assignment, 4).tolist() == [2, 2, 2, 2]
    assert all(len(set(assignment[c::4])) == 1 for c in range(4))


@pytest.mark.parametrize("method", ["metis", "random"])
def test_one_part_keeps_the_order_of_nodes_and_edges(tmp_path: Path, method: str) -> None:
    store, manifest = ensure_store(settings(tmp_path, method, parts=1))
    for name in ARRAYS:
        assert (store / "part0" / f"{name}.npy").read_bytes() == (store / "global" / f"{name}.npy").read_bytes()
    assert manifest["cut_edges"] == 0


@pytest.fixture(scope="module", params=["metis", "random"])
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    return ensure_store(settings(tmp_path_factory.mktemp("parts"), request.param))


def test_every_node_is_in_exactly_one_part(built: tuple[Path, dict[str, Any]]) -> None:
    store, _ = built
    assert parts_on_disk(store) == [0, 1, 2]
    whole = read_shard(store / "global")
    parts = [read_shard(store / f"part{p}") for p in range(3)]
    nodes = np.concatenate([part.extra["nodes"] for part in parts])
    assert sorted(nodes.tolist()) == list(range(300))
    for p, part in enumerate(parts):
        assert (whole.extra["assignment"][part.extra["nodes"]] == p).all()
        for name in ("features", "labels", "split"):
            assert (getattr(part.graph, name) == getattr(whole.graph, name)[part.extra["nodes"]]).all()
        part.graph.validate(f"part {p}")
        assert part.store_id == whole.store_id


def test_the_manifest_counts_what_the_folders_hold(built: tuple[Path, dict[str, Any]]) -> None:
    store, manifest = built
    whole = read_shard(store / "global")
    assignment = whole.extra["assignment"].tolist()
    rows = rows_of(whole.graph.indptr, whole.graph.indices)
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
    config = settings(tmp_path / "deep" / "root", "random")
    store, manifest = ensure_store(config, said.append)
    assert said
    before = content(store)
    said.clear()
    again, same = ensure_store(config, said.append)
    assert (again, same, said) == (store, manifest, [])
    assert content(store) == before
    assert list((tmp_path / "deep" / "root").iterdir()) == [store]


def test_two_builds_write_the_same_bytes(built: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    store, manifest = built
    again, _ = ensure_store(settings(tmp_path, manifest["partitioner"]))
    assert again != store
    assert sorted(content(again)) == sorted(content(store))
    for name in content(store):
        assert (again / name).read_bytes() == (store / name).read_bytes(), name


@pytest.mark.parametrize(
    "change",
    [{"nodes": 301}, {"homophily": 0.6}, {"method": "random"}, {"parts": 2}, {"seed": 1}],
)
def test_other_settings_get_another_folder(tmp_path: Path, change: dict[str, Any]) -> None:
    assert store_path(settings(tmp_path, **change)) != store_path(settings(tmp_path))


def test_the_datasets_seed_is_apart_from_the_partitioners_and_gets_another_folder(tmp_path: Path) -> None:
    config = settings(tmp_path)
    other = replace(config, dataset=replace(config.dataset, seed=1))
    assert store_path(other) not in (store_path(config), store_path(settings(tmp_path, seed=1)))


def test_settings_that_do_not_change_the_parts_share_the_folder(tmp_path: Path) -> None:
    config = settings(tmp_path)
    others = replace(config, seed=5, model=ModelConfig("gcn"), num_rounds=3, run_dir="x")
    assert store_path(others) == store_path(config)


def test_the_folders_name(tmp_path: Path) -> None:
    default = replace(settings(tmp_path, parts=4), dataset=SyntheticConfig())
    assert store_path(default) == tmp_path / "synthetic-metis-4-0"
    name = store_path(settings(tmp_path, "random", seed=9)).name
    assert name.startswith("synthetic_")
    assert name.endswith("-random-3-9")


def test_a_store_of_other_data_is_refused(tmp_path: Path) -> None:
    config = settings(tmp_path, "random")
    store, manifest = ensure_store(config)
    write_json(store / "manifest.json", manifest | {"dataset": manifest["dataset"] | {"nodes": 299}})
    with pytest.raises(UserError, match=f"^{store}: built from other dataset settings"):
        ensure_store(config)


def test_half_a_store_is_never_taken_for_a_whole_one(tmp_path: Path) -> None:
    """A killed builder leaves its temporary folder, manifest and all: the next one builds, and clears it away."""
    config = settings(tmp_path, "random")
    path = store_path(config)
    left = tmp_path / f".{path.name}.tmp-0123abcd"
    (left / "part0").mkdir(parents=True)
    write_json(left / "manifest.json", {"schema_version": 1, "dataset": {}})
    said: list[str] = []
    store, manifest = ensure_store(config, said.append)
    assert said
    assert manifest["num_nodes"] == 300
    assert list(tmp_path.iterdir()) == [store]


def test_a_builder_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def disk_full(path: Path, content: Any) -> None:
        raise OSError(28, "No space left on device")

    root = tmp_path / "root"
    monkeypatch.setattr(partition, "write_json", disk_full)  # the manifest, last of all
    with pytest.raises(OSError, match="No space left"):
        ensure_store(settings(root, "random"))
    assert not root.exists() or list(root.iterdir()) == []


def test_a_folder_without_a_manifest_is_named(tmp_path: Path) -> None:
    """Half copied, or its manifest lost: it may hold what the user wants to keep."""
    config = settings(tmp_path, "random")
    path = store_path(config)
    (path / "part0").mkdir(parents=True)
    with pytest.raises(UserError, match=str(path)):
        ensure_store(config)
    assert list(tmp_path.iterdir()) == [path]


def refused(root: Path, **change: Any) -> str:
    with pytest.raises(UserError) as error:
        ensure_store(settings(root, **change))
    assert not root.exists() or list(root.iterdir()) == []
    assert "\n" not in str(error.value)
    return str(error.value)


def test_more_parts_than_nodes(tmp_path: Path) -> None:
    message = refused(tmp_path / "root", nodes=5, degree=2.0, parts=6)
    assert "cluster.num_machines=6" in message
    assert "5 nodes" in message


@pytest.mark.parametrize("method", ["metis", "random"])
def test_a_part_without_training_nodes(tmp_path: Path, method: str) -> None:
    message = refused(tmp_path / "root", method=method, train_fraction=0.004)  # one node
    assert f"partition={method}: no training node in part" in message


def test_a_root_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=f"^partition.root={tmp_path / 'file'}"):
        ensure_store(settings(tmp_path / "file"))


def test_a_graph_without_edges_can_be_cut(tmp_path: Path) -> None:
    store, manifest = ensure_store(settings(tmp_path, degree=0.0))
    assert manifest["cut_edges"] == manifest["num_edges"] == 0
    read_shard(store / "part2").graph.validate("part 2")


def test_label_skew_by_hand() -> None:
    assert label_skew([10, 10], [50, 50]) == 0
    assert label_skew([10, 0, 0], [0, 20, 20]) == 1
    assert label_skew([30, 10], [50, 50]) == pytest.approx(0.25)  # shares 3/4, 1/4 against 1/2, 1/2
    assert label_skew([0, 0], [5, 5]) == pytest.approx(0.5)
