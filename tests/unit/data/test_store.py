"""Graphs on disk: round trips, and damage that is named with its file."""

import io
import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from llcg_dist.config.schema import Verify
from llcg_dist.data import store
from llcg_dist.data.graph import Graph, induced_subgraph
from llcg_dist.data.rows import row_slices
from llcg_dist.data.store import read_shard, write_shard
from llcg_dist.errors import UserError
from tests.helpers.graphs import community_graph, graph_of

GRAPH = community_graph(30)
NODES = np.arange(30) * 7
ARRAYS = ("indptr", "indices", "features", "labels", "split")


@pytest.fixture
def shard(tmp_path: Path) -> Path:
    store.write_shard(tmp_path / "part0", GRAPH, "store-1", nodes=NODES)
    return tmp_path / "part0"


def test_round_trip(shard: Path) -> None:
    read = store.read_shard(shard)
    for name in ARRAYS:
        before, after = getattr(GRAPH, name), getattr(read.graph, name)
        assert (after.dtype, after.shape, after.tobytes()) == (before.dtype, before.shape, before.tobytes())
    assert read.extra["nodes"].tolist() == NODES.tolist()
    assert read.store_id == "store-1"
    assert (read.graph.num_classes, read.graph.task, read.graph.metric) == (3, "multiclass", "accuracy")
    read.graph.validate("test")


def test_round_trip_of_several_labels_and_of_no_edges(tmp_path: Path) -> None:
    labels = np.array([[0, 1], [1, 1]], np.float32)
    graph = graph_of([], 2, labels=labels, task="multilabel", metric="roc_auc")
    store.write_shard(tmp_path / "x", graph, "id")
    read = store.read_shard(tmp_path / "x").graph.validate("test")
    assert read.labels.tolist() == labels.tolist()
    assert (read.num_edges, read.task, read.metric) == (0, "multilabel", "roc_auc")


def test_arrays_are_mapped_and_cannot_be_written(shard: Path) -> None:
    read = store.read_shard(shard)
    for array in (*(getattr(read.graph, name) for name in ARRAYS), read.extra["nodes"]):
        assert isinstance(array, np.memmap)
        assert array.mode == "r"
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_a_folder_that_is_extended_is_as_if_written_at_once(shard: Path, tmp_path: Path) -> None:
    store.write_shard(tmp_path / "later", GRAPH, "store-1")
    meta = store.extend_shard(tmp_path / "later", nodes=NODES)
    assert meta == json.loads((shard / "graph.json").read_text())
    for path in shard.iterdir():
        assert (tmp_path / "later" / path.name).read_bytes() == path.read_bytes()


def test_description_tells_the_files(shard: Path) -> None:
    meta = json.loads((shard / "graph.json").read_text())
    assert set(meta["arrays"]) == {*ARRAYS, "nodes"}
    entry = meta["arrays"]["features"]
    assert (entry["dtype"], entry["shape"]) == ("float32", [30, 5])
    assert entry["bytes"] == (shard / "features.npy").stat().st_size
    digest = subprocess.run(["sha256sum", shard / "features.npy"], capture_output=True, text=True, check=True)
    assert entry["sha256"] == digest.stdout.split()[0]


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-8])


def save(array: Any) -> Callable[[Path], None]:
    return lambda path: np.save(path, array, allow_pickle=True)


def without(*keys: str) -> Callable[[Path], None]:
    """Removes a key of the description, however deep."""

    def damage(path: Path) -> None:
        content = json.loads(path.read_text())
        owner = content
        for key in keys[:-1]:
            owner = owner[key]
        del owner[keys[-1]]
        path.write_text(json.dumps(content))

    return damage


DAMAGE: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "truncated": ("features.npy", truncate),
    "only a header's start": ("labels.npy", lambda path: path.write_bytes(path.read_bytes()[:20])),
    "empty": ("labels.npy", lambda path: path.write_bytes(b"")),
    "not npy": ("split.npy", lambda path: path.write_text("0 1 2")),
    "pickled": ("labels.npy", save(np.array([{"a": 1}, None], dtype=object))),
    "other shape": ("features.npy", save(GRAPH.features[:-1])),
    "other type": ("indices.npy", save(GRAPH.indices.astype(np.int64))),
    "missing": ("indptr.npy", Path.unlink),
    "missing extra": ("nodes.npy", Path.unlink),
    "JSON cut off": ("graph.json", truncate),
    "JSON not text": ("graph.json", lambda path: path.write_bytes(b"\xff\xfe\x00")),
    "JSON a list": ("graph.json", lambda path: path.write_text("[]")),
    "no JSON": ("graph.json", Path.unlink),
    "no arrays": ("graph.json", without("arrays")),
    "an array less": ("graph.json", without("arrays", "indices")),
    "no shape": ("graph.json", without("arrays", "labels", "shape")),
    "no classes": ("graph.json", without("num_classes")),
    "no store": ("graph.json", without("store_id")),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_named_with_its_file(shard: Path, kind: str) -> None:
    name, damage = DAMAGE[kind]
    damage(shard / name)
    with pytest.raises(UserError) as refused:
        store.read_shard(shard)
    assert str(refused.value).startswith(f"{shard / name}: ")
    assert "\n" not in str(refused.value)


def test_a_description_cannot_lead_out_of_its_folder(shard: Path) -> None:
    content = json.loads((shard / "graph.json").read_text())
    np.save(shard.parent / "secret.npy", NODES)
    content["arrays"]["../secret"] = content["arrays"]["nodes"]
    (shard / "graph.json").write_text(json.dumps(content))
    with pytest.raises(UserError, match="secret"):
        store.read_shard(shard)


def test_a_changed_byte_is_found_by_the_full_check(shard: Path) -> None:
    content = bytearray((shard / "features.npy").read_bytes())
    content[-1] ^= 1
    (shard / "features.npy").write_bytes(content)
    store.read_shard(shard, verify=Verify.sizes)
    with pytest.raises(UserError, match=f"^{shard / 'features.npy'}: .*sha256"):
        store.read_shard(shard, verify=Verify.full)


def test_an_intact_shard_passes_the_full_check(shard: Path) -> None:
    assert store.read_shard(shard, verify=Verify.full).graph.num_nodes == 30


def test_arrays_that_do_not_fit_together_are_refused(tmp_path: Path) -> None:
    fewer, short = replace(GRAPH, split=GRAPH.split[:-1]), replace(GRAPH, indices=GRAPH.indices[:-2])
    for name, graph in {"fewer": fewer, "short": short}.items():
        store.write_shard(tmp_path / name, graph, "id")
        with pytest.raises(UserError, match="do not fit together"):
            store.read_shard(tmp_path / name)


@pytest.mark.parametrize("version", [0, 1, "2", None])
def test_other_schema_versions_are_refused(shard: Path, version: Any) -> None:
    for path, read in ((shard / "graph.json", store.read_shard), (shard / "manifest.json", store.read_manifest)):
        content = json.loads(path.read_text()) if path.exists() else {}
        store.write_json(path, content | {"schema_version": version})
        with pytest.raises(UserError, match=f"schema version {version}") as refused:
            read(shard)
        assert str(path) in str(refused.value)


def test_held_parts(tmp_path: Path) -> None:
    assert store.parts_on_disk(tmp_path / "nowhere") == []
    for name in ("part0", "part2", "part10", "global", "partial"):
        store.write_shard(tmp_path / name, graph_of([], 1), "id")
    (tmp_path / "part3").mkdir()  # half copied: no graph.json
    assert store.parts_on_disk(tmp_path) == [0, 2, 10]


def test_what_is_written_in_blocks_is_what_numpy_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llcg_dist.data.atomic_files.row_slices", lambda array: row_slices(array, 3))
    features = np.arange(14, dtype=np.float32).reshape(7, 2)
    np.save(tmp_path / "features.npy", np.asfortranarray(features))
    graph = graph_of([(i, (i + 1) % 7) for i in range(7)], 7, features=features)
    mapped = Graph(
        graph.indptr,
        graph.indices,
        np.load(tmp_path / "features.npy", mmap_mode="r"),
        graph.labels,
        graph.split,
        graph.num_classes,
        names={"node": np.array(["a", "bc", "d", "e", "é", "f", "g"]), "class": np.array(["no", "yes"])},
    )
    part = induced_subgraph(mapped, np.array([1, 2, 4]), lazy=True)
    write_shard(tmp_path / "part", part, "id")
    write_shard(tmp_path / "full", mapped, "id")
    assert (tmp_path / "part" / "features.npy").read_bytes() == saved(graph.features[[1, 2, 4]])
    assert (tmp_path / "full" / "features.npy").read_bytes() == saved(graph.features)
    assert (tmp_path / "full" / "node_names.npy").read_bytes() == saved(mapped.names["node"])
    again = read_shard(tmp_path / "full").graph
    assert {what: names.tolist() for what, names in again.names.items()} == {
        "node": ["a", "bc", "d", "e", "é", "f", "g"],
        "class": ["no", "yes"],
    }


def saved(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("name", "place", "value", "rule"),
    [
        ("indices", 5, 30, "an edge ends outside the nodes 0..29"),
        ("indices", 5, -1, "an edge ends outside the nodes 0..29"),
        ("indptr", 3, 2**30, "indptr is not ascending"),
        ("labels", 4, 3, "a label is outside the classes"),
        ("assignment", 2, -1, "assignment does not hold"),
    ],
)
def test_numbers_that_lead_out_of_an_array(tmp_path: Path, name: str, place: int, value: int, rule: str) -> None:
    """With the right checksums, as a stranger would write them: kernels would read past the array."""
    arrays = {key: getattr(GRAPH, key).copy() for key in ARRAYS} | {"assignment": np.zeros(30, np.int64)}
    arrays["split"][:] = 1
    arrays[name][place] = value
    graph = replace(GRAPH, **{key: arrays[key] for key in ARRAYS})
    write_shard(tmp_path / "part0", graph, "store-1", assignment=arrays["assignment"])
    with pytest.raises(UserError, match=f"part0/graph.json: {rule}"):
        read_shard(tmp_path / "part0", Verify.full)
