"""Options of a store: features in float16, the whole graph in the order of its parts."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from llcg_dist.api.run import load
from llcg_dist.config.partition import FeaturesDtype, NodeOrder
from llcg_dist.config.schema import Config, Verify
from llcg_dist.data.derived import DataAccess
from llcg_dist.data.graph import Graph
from llcg_dist.data.partition import ensure_store, store_path
from llcg_dist.data.store import extend_shard, read_shard
from llcg_dist.data.whole_graph import given_rows
from llcg_dist.errors import UserError
from llcg_dist.predict import predict
from llcg_dist.train import main as train
from tests.helpers.graphs import rows_of
from tests.helpers.partitions import store_settings

ARRAYS = ("indptr", "indices", "features", "labels", "split")
BOTH = {"features_dtype": FeaturesDtype.float16, "order": NodeOrder.parts}


def with_options(config: Config, **options: Any) -> Config:
    return replace(config, partition=replace(config.partition, **options))


def whole(config: Config) -> tuple[Graph, dict[str, Any]]:
    shard = read_shard(ensure_store(config)[0] / "global", Verify.full)
    return shard.graph, shard.extra


def test_stores_without_options_keep_their_names_and_their_ids(tmp_path: Path) -> None:
    """As they were before there were any."""
    config = with_options(store_settings(tmp_path, "random"), clusters=8)
    assert store_path(config) == tmp_path / "synthetic_7abd9e83-random_6ef9421b-3-0"
    assert ensure_store(config)[1]["store_id"] == "7abd9e833d095ad6a45d3bf088675d0769a556770003"


@pytest.mark.parametrize("option", [{"features_dtype": FeaturesDtype.float16}, {"order": NodeOrder.parts}, BOTH])
def test_an_option_is_another_store_and_in_its_manifest(tmp_path: Path, option: dict[str, Any]) -> None:
    config = store_settings(tmp_path, "random")
    store, manifest = ensure_store(with_options(config, **option))
    assert store != store_path(config)
    assert {name: manifest["partition"][name] for name in option} == option
    assert not set(ensure_store(config)[1]["partition"]) & set(BOTH)


def test_float16_features_everywhere(tmp_path: Path) -> None:
    config = store_settings(tmp_path, "random")
    plain, _ = whole(config)
    half = with_options(config, features_dtype=FeaturesDtype.float16)
    store, _ = ensure_store(half, access=DataAccess.PART_AND_HALO)
    graph = read_shard(store / "global").graph
    assert graph.features.dtype == np.float16
    assert (graph.features == plain.features.astype(np.float16)).all()
    assert (graph.indices == plain.indices).all()
    for part in range(3):
        shard = read_shard(store / f"part{part}")
        assert shard.graph.features.dtype == np.float16
        assert (shard.graph.features == graph.features[shard.extra["nodes"]]).all()
        halo = next((store / f"part{part}" / "halo").glob("*/features.npy"))
        assert np.load(halo).dtype == np.float16


def test_features_too_large_for_float16_are_named(tmp_path: Path) -> None:
    config = store_settings(tmp_path / "root", "random", signal=1e6)
    with pytest.raises(
        UserError, match=r"features_dtype=float16: column \d+ of node \d+ is \S+, float16 ends at 65,504"
    ):
        ensure_store(with_options(config, features_dtype=FeaturesDtype.float16))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("multilabel", [0, 4])
def test_the_whole_graph_in_the_order_of_its_parts(tmp_path: Path, multilabel: int) -> None:
    config = store_settings(tmp_path, "random", multilabel=multilabel)
    plain, of_plain = whole(config)
    graph, extra = whole(with_options(config, order=NodeOrder.parts))
    order, row = extra["order"], given_rows(extra["order"])
    assert sorted(order) == list(range(300))
    assert (extra["assignment"] == np.sort(of_plain["assignment"])).all()
    assert (extra["assignment"][row] == of_plain["assignment"]).all()
    graph.validate("the whole graph")
    for name in ("features", "labels", "split"):
        assert (getattr(graph, name)[row] == getattr(plain, name)).all(), name
    assert (graph.names["node"] == order).all()
    ordered_rows = rows_of(graph.indptr, graph.indices)
    for node, neighbours in enumerate(rows_of(plain.indptr, plain.indices)):
        assert sorted(order[ordered_rows[row[node]]]) == neighbours


def test_parts_are_the_same_but_for_the_numbers_of_their_nodes(tmp_path: Path) -> None:
    config = store_settings(tmp_path, "random")
    store, manifest = ensure_store(config)
    ordered, same = ensure_store(with_options(config, order=NodeOrder.parts))
    order = read_shard(ordered / "global").extra["order"]
    assert (same["cut_edges"], same["parts"]) == (manifest["cut_edges"], manifest["parts"])
    for part in range(3):
        for name in ARRAYS:
            of_part = (folder / f"part{part}" / f"{name}.npy" for folder in (store, ordered))
            assert len({path.read_bytes() for path in of_part}) == 1
        nodes = np.load(ordered / f"part{part}" / "nodes.npy")
        assert (order[nodes] == np.load(store / f"part{part}" / "nodes.npy")).all()


def test_an_order_that_is_none_is_refused(tmp_path: Path) -> None:
    store, _ = ensure_store(with_options(store_settings(tmp_path, "random"), order=NodeOrder.parts))
    order = np.load(store / "global" / "order.npy")
    order[0] = order[1]
    extend_shard(store / "global", order=order)
    with pytest.raises(UserError, match="order does not name every node once"):
        read_shard(store / "global", Verify.full)


@pytest.mark.parametrize("algorithm", ["llcg", "ggs"])
def test_predictions_come_in_the_users_order(tmp_path: Path, algorithm: str) -> None:
    """Training on a store with both options, then predict: row i is node i, and scores are those of the run."""
    settings = [
        "dataset=synthetic", "dataset.nodes=300", "dataset.classes=3", "dataset.homophily=0.9", "dataset.signal=1",
        "partition=random", "partition.features_dtype=float16", "partition.order=parts", "cluster.num_machines=3",
        f"algorithm={algorithm}", "algorithm.K=4", "num_rounds=3", "logger=none", "cluster.backend=loopback",
        f"partition.root={tmp_path}/parts", f"run_dir={tmp_path}/run", "model.hidden=16",
    ]  # fmt: skip
    assert train(settings) == 0
    predict([f"run_dir={tmp_path}/run", f"out={tmp_path}/out.parquet"])
    run = load(tmp_path / "run")
    table = run.predict()
    assert table["node"].tolist() == list(range(300))
    plain, _ = whole(store_settings(tmp_path, "random", nodes=300, degree=20.0, features=64, homophily=0.9, signal=1.0))
    right = table["class"].to_numpy() == plain.labels
    assert right[plain.split == 3].mean() == pytest.approx(run.summary["test_score_at_best_val"])
    assert right.mean() > 0.6
    mask = plain.split == 2
    assert run.predict(nodes=mask).equals(table[mask].reset_index(drop=True))
    assert run.predict(nodes=[7, 3, 250])["class"].tolist() == table["class"][[7, 3, 250]].tolist()
