"""Graphs that PyG's classes read: real ones, and small ones in the same raw formats."""

import logging
from pathlib import Path

import numpy as np
import pytest

from llcg_dist.data.graph import TEST, TRAIN, UNUSED, VAL, Graph
from llcg_dist.errors import UserError
from tests.helpers.raw_files import (
    EDGES,
    NODES,
    SPLIT,
    edges_of,
    features,
    loaded,
    no_network,
    real_data,
    several_labels,
    undirected,
    write_gnn_benchmark,
    write_graphsaint,
)

pytestmark = pytest.mark.usefixtures(no_network.__name__)


def sizes(graph: Graph) -> list[int]:
    return [len(graph.nodes_in(split)) for split in (TRAIN, VAL, TEST)]


def test_cora(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    root = real_data("Planetoid", tmp_path)
    public = loaded(root, "dataset=planetoid")
    assert (public.num_nodes, public.num_edges, public.num_features, public.num_classes) == (2708, 5278, 1433, 7)
    assert sizes(public) == [140, 500, 1000]
    assert np.bincount(public.labels[public.split == TRAIN]).tolist() == [20] * 7
    assert public.metric == "accuracy"
    full = loaded(root, "dataset=planetoid", "dataset.split=full")
    assert sizes(full) == [2708 - 1500, 500, 1000]
    assert (full.nodes_in(TEST) == public.nodes_in(TEST)).all()
    drawn = loaded(root, "dataset=planetoid", "dataset.split=random")
    assert sizes(drawn) == [1625, 542, 541]
    assert caplog.records == []


def test_computers_with_seeded_fractions(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    root = real_data("Amazon", tmp_path)
    graph = loaded(root, "dataset=amazon")
    assert (graph.num_nodes, graph.num_edges, graph.num_features, graph.num_classes) == (13752, 245861, 767, 10)
    assert sizes(graph) == [8251, 2750, 2751]
    assert (loaded(root, "dataset=amazon").split == graph.split).all()
    assert (loaded(root, "dataset=amazon", "dataset.seed=1").split != graph.split).any()
    fewer = loaded(root, "dataset=amazon", "dataset.train_fraction=0.1", "dataset.val_fraction=0.1")
    assert sizes(fewer) == [1375, 1375, 11002]
    assert caplog.records == []


def test_tolokers_has_ten_splits(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    root = real_data("Hetero", tmp_path)
    raw = np.load(root / "tolokers" / "raw" / "tolokers.npz")
    for index in (0, 7):
        graph = loaded(root, "dataset=heterophilous", f"dataset.split={index}")
        assert (graph.num_nodes, graph.num_edges, graph.num_features, graph.num_classes) == (11758, 519000, 10, 2)
        assert graph.metric == "roc_auc"
        for split, key in ((TRAIN, "train_masks"), (VAL, "val_masks"), (TEST, "test_masks")):
            assert (graph.nodes_in(split) == np.flatnonzero(raw[key][index])).all()
    assert caplog.records == []


@pytest.mark.parametrize("source", ["flickr", "reddit"])
def test_one_class_a_node(source: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    labels = [node % 3 for node in range(NODES)]
    write_graphsaint(tmp_path, labels)
    graph = loaded(tmp_path, f"dataset={source}")
    assert edges_of(graph) == undirected(EDGES)
    assert (graph.features == features()).all()
    assert graph.labels.tolist() == labels
    assert (graph.task, graph.metric, graph.num_classes) == ("multiclass", "f1_micro", 3)
    for split, nodes in ((TRAIN, SPLIT["train"]), (VAL, SPLIT["val"]), (TEST, SPLIT["test"]), (UNUSED, [9])):
        assert graph.nodes_in(split).tolist() == nodes
    counted = len(EDGES) * (2 if source == "flickr" else 1)
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert f"dataset {source} is not the published graph: 10 nodes instead of" in caplog.text
    assert f"{counted} edges instead of" in caplog.text


def test_yelp_has_several_labels_a_node(tmp_path: Path) -> None:
    labels = several_labels(4)
    write_graphsaint(tmp_path, labels.tolist())
    graph = loaded(tmp_path, "dataset=yelp")
    assert (graph.task, graph.metric, graph.num_classes) == ("multilabel", "f1_micro", 4)
    assert graph.labels.dtype == np.float32
    assert (graph.labels == labels).all()


def test_coauthor(tmp_path: Path) -> None:
    write_gnn_benchmark(tmp_path / "Physics" / "raw" / "ms_academic_phy.npz")
    graph = loaded(tmp_path, "dataset=coauthor", "dataset.name=Physics")
    assert edges_of(graph) == undirected(EDGES)
    assert (graph.features == (features() > 0)).all()
    assert sizes(graph) == [6, 2, 2]


def test_the_second_load_reads_what_the_first_one_processed(tmp_path: Path) -> None:
    write_graphsaint(tmp_path, [0] * 9 + [1])
    first = loaded(tmp_path, "dataset=flickr")
    assert (tmp_path / "processed" / "data.pt").exists()
    second = loaded(tmp_path, "dataset=flickr")
    assert (second.labels == first.labels).all()
    assert edges_of(second) == edges_of(first)


def test_a_read_only_folder_stays_as_it_is(tmp_path: Path) -> None:
    root = tmp_path / "flickr"
    write_graphsaint(root, [0] * 9 + [1])
    root.chmod(0o555)
    try:
        assert edges_of(loaded(root, "dataset=flickr")) == undirected(EDGES)
        assert [path.name for path in root.iterdir()] == ["raw"]
    finally:
        root.chmod(0o755)


MISSING = {
    "flickr": ("raw/adj_full.npz", "Flickr('{root}')"),
    "reddit": ("raw/adj_full.npz", "Reddit2('{root}')"),
    "yelp": ("raw/adj_full.npz", "Yelp('{root}')"),
    "planetoid": ("Cora/raw/ind.cora.x", "Planetoid('{root}', 'Cora')"),
    "amazon": ("Computers/raw/amazon_electronics_computers.npz", "Amazon('{root}', 'Computers')"),
    "coauthor": ("CS/raw/ms_academic_cs.npz", "Coauthor('{root}', 'CS')"),
    "heterophilous": ("tolokers/raw/tolokers.npz", "HeterophilousGraphDataset('{root}', 'Tolokers')"),
}


@pytest.mark.parametrize("source", MISSING)
def test_missing_files_are_named_and_nothing_is_tried(source: str, tmp_path: Path) -> None:
    root = tmp_path / "nowhere"
    file, call = MISSING[source]
    with pytest.raises(UserError) as error:
        loaded(root, f"dataset={source}")
    message = str(error.value)
    assert message.startswith(f"dataset={source}: no file {root / file}")
    assert call.format(root=root) in message
    assert "\n" not in message
    assert not root.exists()


def test_one_missing_file_of_four(tmp_path: Path) -> None:
    write_graphsaint(tmp_path, [0] * 9 + [1])
    (tmp_path / "raw" / "role.json").unlink()
    with pytest.raises(UserError, match=f"^dataset=flickr: no file {tmp_path}/raw/role.json; put them there"):
        loaded(tmp_path, "dataset=flickr")


@pytest.mark.parametrize("file", ["adj_full.npz", "feats.npy", "class_map.json"])
def test_a_damaged_file(file: str, tmp_path: Path) -> None:
    write_graphsaint(tmp_path, [0] * 9 + [1])
    whole = (tmp_path / "raw" / file).read_bytes()
    (tmp_path / "raw" / file).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UserError, match=f"^dataset.root={tmp_path}: Flickr cannot read its files"):
        loaded(tmp_path, "dataset=flickr")


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        (["dataset=planetoid", "dataset.name=cora"], "dataset.name=cora: must be one of Cora, CiteSeer, PubMed"),
        (["dataset=flickr", "dataset.name=Flickr2"], "dataset.name=Flickr2: must be one of flickr"),
        (["dataset=planetoid", "dataset.split=geom"], "dataset.split=geom: must be one of public, full, random"),
        (["dataset=heterophilous", "dataset.split=10"], "dataset.split=10: must be one of the ten splits"),
        (["dataset=amazon", "dataset.train_fraction=0"], r"dataset.train_fraction=0.0: must lie in \(0, 1\]"),
        (["dataset=amazon", "dataset.val_fraction=0.5"], "dataset.val_fraction=0.5: .* at most 1"),
    ],
)
def test_settings_that_name_no_graph(settings: list[str], rule: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"^{rule}"):
        loaded(tmp_path, *settings)
