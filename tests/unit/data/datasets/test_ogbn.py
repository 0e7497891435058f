"""OGB's graphs for node prediction from small files in their own on-disk format."""

from pathlib import Path

import numpy as np
import pytest

from llcg_dist.cli.main import run
from llcg_dist.data.graph import TEST, TRAIN, UNUSED, VAL, Graph
from llcg_dist.data.rows import Array
from llcg_dist.errors import UserError
from tests.helpers.raw_files import (
    EDGES,
    NODES,
    SPLIT,
    edges_of,
    features,
    loaded,
    no_network,
    several_labels,
    undirected,
    write_ogbn,
)

pytestmark = pytest.mark.usefixtures(no_network.__name__)
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


def test_the_command_ends_with_code_2_and_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And asks nothing: ogb itself would ask before a download of this size."""
    monkeypatch.chdir(tmp_path)
    assert run(["partition", "dataset=ogbn-products", "dataset.root=here"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("llcg: error: dataset=ogbn-products: no file here/ogbn_products/")
    assert error.count("\n") == 1
