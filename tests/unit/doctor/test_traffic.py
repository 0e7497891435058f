"""Predicted bytes: against the books of a run, and worked out by hand."""

from pathlib import Path

import numpy as np
import pytest

from llcg_dist.algorithms.traffic import MessageBytes
from llcg_dist.config.compose import load_config
from llcg_dist.data.graph import TRAIN
from llcg_dist.data.partition import ensure_store
from llcg_dist.data.store import read_shard
from llcg_dist.doctor.traffic import count_remote_rows, predict_traffic, traffic_of_methods
from llcg_dist.sampling.neighbor import NeighborSampler
from tests.helpers.graphs import community_graph, dense, graph_of
from tests.helpers.run_files import rows
from tests.helpers.training import train_in_process


@pytest.mark.parametrize(("method", "dtype"), [("psgd_pa", "float32"), ("llcg", "float32"), ("llcg", "int8")])
def test_what_is_predicted_is_what_a_run_counts(tmp_path: Path, method: str, dtype: str) -> None:
    settings = ["experiment=tiny", f"algorithm={method}", "algorithm.K=2", "partition=random"]
    settings += ["num_rounds=3", f"algorithm.exchange_dtype={dtype}", f"partition.root={tmp_path}/parts"]
    train_in_process(*settings, f"run_dir={tmp_path}/run")
    config = load_config(settings)
    full = read_shard(ensure_store(config)[0] / "global")
    predicted, _ = predict_traffic(config, full.graph, full.extra["assignment"])
    of_method = predicted[method]
    recorded = {(row["bytes_up"], row["bytes_down"]) for row in rows(tmp_path / "run")}
    assert recorded == {(of_method.up, of_method.down)}
    assert of_method.features == of_method.gradients == 0


def test_every_method_by_hand() -> None:
    """Three machines, two steps, a model of 100 bytes of which 20 are statistics, 1000 bytes of rows a step."""
    config = load_config(["cluster.num_machines=3", "algorithm.K=2", "algorithm.rho=1.0"])
    rows = traffic_of_methods(config, MessageBytes(100, 20, 80, features_per_step=1000))
    assert set(rows) == {"psgd_pa", "llcg", "subgraph_approx", "ggs", "full_sync"}
    for method in ("psgd_pa", "llcg", "subgraph_approx"):
        assert (rows[method].up, rows[method].down, rows[method].total) == (300, 300, 600)
    assert (rows["ggs"].up, rows["ggs"].features, rows["ggs"].total) == (300, 6000, 6600)
    full_sync = rows["full_sync"]
    assert (full_sync.up, full_sync.down, full_sync.gradients, full_sync.features) == (60, 0, 960, 6000)


def test_remote_rows_by_hand() -> None:
    """A path 0-1-2-3 cut in the middle: of each part's two nodes, one reads one row of the other part."""
    path = graph_of([(0, 1), (1, 2), (2, 3)], 4, split=np.ones(4, np.int8))
    config = load_config(["cluster.num_machines=2", "train.local_batch_size=2"])
    assignment = np.array([0, 0, 1, 1])
    assert count_remote_rows(config, path, assignment, NeighborSampler(path, [-1])).per_step == 1
    assert count_remote_rows(config, path, assignment, NeighborSampler(path, [-1, -1])).per_step == 2
    assert count_remote_rows(config, path, assignment, NeighborSampler(path, [])).per_step == 0


def test_remote_rows_of_full_batches_are_those_within_reach() -> None:
    """Batches of all training nodes with all neighbours: a step reads every node of the other part within two hops."""
    graph, hops = community_graph(), 2
    assignment = (np.arange(graph.num_nodes) % 2).astype(np.int32)
    reach = (np.eye(graph.num_nodes) + dense(graph)) @ (np.eye(graph.num_nodes) + dense(graph)) > 0
    read = []
    for part in (0, 1):
        seeds = (assignment == part) & (graph.split == TRAIN)
        read.append(int((reach[seeds].any(axis=0) & (assignment != part)).sum()))
    config = load_config(["cluster.num_machines=2", "train.local_batch_size=1000"])
    found = count_remote_rows(config, graph, assignment, NeighborSampler(graph, [-1] * hops))
    assert (found.per_step, found.batches) == (sum(read) / 2, 8)
    assert read != [60, 60]  # else "every node of the other part" would do


def test_the_estimate_repeats_itself_and_is_zero_where_nothing_is_cut() -> None:
    graph = community_graph()
    config = load_config(["cluster.num_machines=2", "train.local_batch_size=10"])
    assignment = (np.arange(graph.num_nodes) % 2).astype(np.int32)
    first, again = (count_remote_rows(config, graph, assignment, NeighborSampler(graph, [3, 3])) for _ in range(2))
    assert first == again
    assert first.batches == 8
    alone = load_config(["cluster.num_machines=1"])
    assert (
        count_remote_rows(alone, graph, np.zeros(graph.num_nodes, np.int32), NeighborSampler(graph, [3, 3])).per_step
        == 0
    )
