"""MAG240M from small files in its own format: features stay memory-mapped, half precision."""

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from llcg_dist.config.compose import load_config
from llcg_dist.data.graph import TRAIN, UNUSED, VAL
from llcg_dist.data.partition import ensure_store
from llcg_dist.data.rows import Array
from llcg_dist.data.store import read_shard
from llcg_dist.errors import UserError
from llcg_dist.predict import predict
from tests.helpers.raw_files import (
    EDGES,
    NODES,
    edges_of,
    features,
    loaded,
    no_network,
    undirected,
    write_mag240m,
)
from tests.helpers.run_files import model_bytes, summary
from tests.helpers.training import train_in_process

pytestmark = pytest.mark.usefixtures(no_network.__name__)
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


def trained(folder: Path, paper_features: Array) -> tuple[dict[str, Any], bytes, pd.DataFrame]:
    """(summary, model, predictions) of two rounds."""
    write_mag240m(folder / "data", mag_edges(), PAPER_LABELS, paper_features)
    places = [f"dataset.root={folder / 'data'}", f"partition.root={folder / 'parts'}", f"run_dir={folder / 'run'}"]
    quick = ["partition=random", "cluster.num_machines=2", "num_rounds=2", "model.hidden=4"]
    train_in_process("dataset=mag240m", "model=skip_sage", *places, *quick)
    predictions = pd.read_csv(predict([f"run_dir={folder / 'run'}"]))
    return summary(folder / "run"), model_bytes(folder / "run"), predictions


def test_half_precision_trains_and_predicts_as_the_same_numbers_in_single(tmp_path: Path) -> None:
    half = features().astype(np.float16)
    ended, model, predictions = trained(tmp_path / "half", half)
    _, same_model, same_predictions = trained(tmp_path / "single", half.astype(np.float32))
    assert model == same_model
    pd.testing.assert_frame_equal(predictions, same_predictions)
    assert predictions["node"].tolist() == list(range(NODES))
    assert 0 <= ended["best_val_score"] <= 1
    assert ended["final_test_score"] is None  # its labels are not public


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
