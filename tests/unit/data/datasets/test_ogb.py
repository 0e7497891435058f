"""OGB's graphs from small files in its own on-disk formats, and MAG240M's memory-mapped features."""

import json
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from llcg_dist.config.compose import load_config
from llcg_dist.data.graph import TEST, TRAIN, UNUSED, VAL, Graph
from llcg_dist.data.partition import ensure_store
from llcg_dist.data.rows import Array
from llcg_dist.data.store import read_shard
from llcg_dist.errors import UserError
from llcg_dist.predict import predict
from llcg_dist.train import main as train
from tests.helpers.raw_files import (
    EDGES,
    NODES,
    SPLIT,
    alone,
    edges_of,
    features,
    loaded,
    own_arithmetic,
    several_labels,
    undirected,
    write_mag240m,
    write_ogbn,
)

pytestmark = pytest.mark.usefixtures(alone.__name__, own_arithmetic.__name__)

CLASSES = (np.arange(NODES) % 3)[:, None]
YEARS = np.full((NODES, 1), 2015)


def write_arxiv(root: Path) -> Path:
    return write_ogbn(root, "ogbn_arxiv", "time", node_feat=features(), node_label=CLASSES, node_year=YEARS)


def assert_splits(graph: Graph) -> None:
    for split, nodes in ((TRAIN, SPLIT["train"]), (VAL, SPLIT["val"]), (TEST, SPLIT["test"]), (UNUSED, [9])):
        assert graph.nodes_in(split).tolist() == nodes


def test_arxiv(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_arxiv(tmp_path)
    graph = loaded(tmp_path, "dataset=ogbn-arxiv")
    assert edges_of(graph) == undirected(EDGES)
    assert np.allclose(graph.features, features())
    assert graph.features.dtype == np.float32
    assert graph.labels.tolist() == CLASSES[:, 0].tolist()
    assert (graph.task, graph.metric, graph.num_classes) == ("multiclass", "accuracy", 40)
    assert_splits(graph)
    assert "10 nodes instead of 169,343, 12 edges instead of 1,166,243, 3 features instead of 128" in caplog.text


def test_nothing_is_written_and_no_pickle_is_read(tmp_path: Path) -> None:
    """What an earlier ogb left in processed/ is a pickle of any content."""
    folder = write_arxiv(tmp_path)
    (folder / "processed").mkdir()
    (folder / "processed" / "data_processed").write_bytes(b"not to be opened")
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    assert_splits(loaded(tmp_path, "dataset=ogbn-arxiv"))
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_products(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_ogbn(tmp_path, "ogbn_products", "sales_ranking", node_feat=features(), node_label=CLASSES)
    graph = loaded(tmp_path, "dataset=ogbn-products")
    assert edges_of(graph) == undirected(EDGES)
    assert (graph.metric, graph.num_classes) == ("accuracy", 47)
    assert "12 edges instead of 61,859,140" in caplog.text  # pairs, though ogb doubles them
    assert_splits(graph)


def mean_over_edges(edge_features: Array) -> Array:
    """By hand: a node's edges are those it stands at either end of."""
    rows = []
    for node in range(NODES):
        own = [edge_features[i] for i, edge in enumerate(EDGES) if node in edge]
        rows.append(np.mean(own, axis=0))
    return np.array(rows, np.float32)


def test_proteins_average_the_features_of_edges(tmp_path: Path) -> None:
    edge_features = np.random.default_rng(2).random((len(EDGES), 8)).round(3)
    labels = several_labels(112)
    raw = {"edge_feat": edge_features, "node_label": labels, "species": np.full((NODES, 1), 9606)}
    write_ogbn(tmp_path, "ogbn_proteins", "species", **raw)
    graph = loaded(tmp_path, "dataset=ogbn-proteins")
    assert np.allclose(graph.features, mean_over_edges(edge_features), atol=1e-6)
    assert (graph.task, graph.metric, graph.num_classes) == ("multilabel", "roc_auc", 112)
    assert (graph.labels == labels).all()
    assert_splits(graph)


@pytest.mark.parametrize(
    "file", ["RELEASE_v1.txt", "raw/edge.csv.gz", "raw/node-feat.csv.gz", "split/time/valid.csv.gz"]
)
def test_a_missing_file_is_named_with_the_archive_it_is_in(file: str, tmp_path: Path) -> None:
    folder = write_arxiv(tmp_path)
    (folder / file).unlink()
    with pytest.raises(UserError) as error:
        loaded(tmp_path, "dataset=ogbn-arxiv")
    archive = "http://snap.stanford.edu/ogb/data/nodeproppred/arxiv.zip"
    assert str(error.value).startswith(f"dataset=ogbn-arxiv: no file {folder / file}; unpack {archive}")
    assert f"rename the folder arxiv in it to {folder}" in str(error.value)


@pytest.mark.parametrize("file", ["raw/edge.csv.gz", "raw/node-label.csv.gz", "split/time/train.csv.gz"])
def test_a_damaged_file(file: str, tmp_path: Path) -> None:
    folder = write_arxiv(tmp_path)
    whole = (folder / file).read_bytes()
    (folder / file).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UserError, match=f"^{folder}: ogb cannot read its files"):
        loaded(tmp_path, "dataset=ogbn-arxiv")


PAPER_LABELS = np.array([0, 1, 2, 0, 1, 2, 0, np.nan, np.nan, np.nan], np.float32)
"""As published: known for training and validation, not for test and the rest."""


def mag_edges() -> Array:
    return np.array(EDGES, np.int64).T


def test_mag240m(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    half = features(768).astype(np.float16)
    write_mag240m(tmp_path, mag_edges(), PAPER_LABELS, half)
    graph = loaded(tmp_path, "dataset=mag240m")
    assert edges_of(graph) == undirected(EDGES)
    assert isinstance(graph.features, np.memmap)
    assert graph.features.dtype == np.float16
    assert (graph.features == half).all()
    assert graph.labels.tolist() == [0, 1, 2, 0, 1, 2, 0, -1, -1, -1]
    assert graph.split.tolist() == [TRAIN] * 5 + [VAL] * 2 + [UNUSED] * 3
    assert graph.label_counts().tolist() == [3, 2, 2]
    assert "12 edges instead of 1,297,748,926" in caplog.text


def test_mag240m_stays_on_disk_all_the_way_to_its_parts(tmp_path: Path) -> None:
    """150 MB of features, of which no more than a few blocks of rows may be in memory at a time."""
    papers = 100_000
    labels = np.full(papers, np.nan, np.float32)
    labels[:NODES] = PAPER_LABELS
    ring = np.arange(papers)
    folder = write_mag240m(tmp_path / "data", np.stack([ring, np.roll(ring, 1)]), labels)
    path = folder / "processed" / "paper" / "node_feat.npy"
    written = np.lib.format.open_memmap(path, mode="w+", dtype=np.float16, shape=(papers, 768))
    written[:, 0] = ring % 1000
    written.flush()
    settings = ["dataset=mag240m", f"dataset.root={tmp_path / 'data'}", f"partition.root={tmp_path / 'parts'}"]
    config = load_config([*settings, "partition=random", "cluster.num_machines=2"])
    tracemalloc.start()
    try:
        store, _ = ensure_store(config)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < written.nbytes / 1.5
    for name in ("global", "part0", "part1"):
        shard = read_shard(store / name)
        nodes = shard.extra.get("nodes", ring)
        assert shard.graph.features.dtype == np.float16
        assert (shard.graph.features[:, 0] == nodes % 1000).all()


def test_a_model_trains_and_predicts_on_half_precision(tmp_path: Path) -> None:
    write_mag240m(tmp_path / "data", mag_edges(), PAPER_LABELS, features().astype(np.float16))
    places = [
        f"dataset.root={tmp_path / 'data'}",
        f"partition.root={tmp_path / 'parts'}",
        f"run_dir={tmp_path / 'run'}",
    ]
    quick = ["partition=random", "cluster.num_machines=2", "cluster.backend=loopback", "num_rounds=2", "model.hidden=4"]
    assert train(["dataset=mag240m", "model=skip_sage", *places, *quick]) == 0
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert 0 <= summary["best_val_score"] <= 1
    assert summary["final_test_score"] is None  # its labels are not public
    predictions = pd.read_csv(predict([f"run_dir={tmp_path / 'run'}"]))
    assert predictions["node"].tolist() == list(range(NODES))


@pytest.mark.parametrize("file", ["RELEASE_v1.txt", "split_dict.pt", "processed/paper/node_feat.npy"])
def test_a_missing_file_of_mag240m(file: str, tmp_path: Path) -> None:
    folder = write_mag240m(tmp_path, mag_edges(), PAPER_LABELS, features().astype(np.float16))
    (folder / file).unlink()
    with pytest.raises(UserError, match=f"^dataset=mag240m: no file {folder / file}; unpack mag240m_kddcup2021.zip"):
        loaded(tmp_path, "dataset=mag240m")


def test_a_training_paper_needs_its_label(tmp_path: Path) -> None:
    labels = PAPER_LABELS.copy()
    labels[2] = np.nan
    write_mag240m(tmp_path, mag_edges(), labels, features().astype(np.float16))
    with pytest.raises(UserError, match="^dataset=mag240m: label of node .?2"):
        loaded(tmp_path, "dataset=mag240m")


def test_infinite_half_precision_features_are_found(tmp_path: Path) -> None:
    half = features().astype(np.float16)
    half[4, 1] = np.inf
    write_mag240m(tmp_path, mag_edges(), PAPER_LABELS, half)
    with pytest.raises(UserError, match=r"^dataset=mag240m: features of node 4 are not finite \(column 1\)"):
        loaded(tmp_path, "dataset=mag240m")
