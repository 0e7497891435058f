"""GGS, full synchronisation and subgraph approximation: what crosses, what is opened, and no machine left waiting."""

from pathlib import Path

import pytest

from tests.helpers.graph_files import two_part_graph
from tests.helpers.run_files import bytes_crossed, model_bytes, model_sizes, rows, summary, wire
from tests.helpers.training import FOUR_ROUNDS, TINY, assert_loopback_equals_ranks, in_ranks, opened_files

P, K, ROUNDS = 2, 3, 4
METHODS = {
    "psgd_pa": ["algorithm=psgd_pa"],
    "ggs": ["algorithm=ggs"],
    "ggs_cache": ["algorithm=ggs", "algorithm.feature_cache=2000"],
    "ggs_labor": ["algorithm=ggs", "sampling.method=labor", "sampling.fanout=3"],
    "full_sync": ["algorithm=full_sync"],
    "full_sync_no_norm": ["algorithm=full_sync", "model.norm=none", "algorithm.averaging=train_nodes"],
    "subgraph_approx": ["algorithm=subgraph_approx"],
    "cut_edges": ["sampling.server_minibatch=cut_edges", "sampling.server_fanout=0.5", "sampling.fanout=0.3"],
}


def unequal_parts(root: Path, method: str) -> list[str]:
    """One part has a single training node and the other 60: fewer than a batch, and not as many as each other."""
    graph = two_part_graph(root / "one_and_many", (1, 60))
    return [*FOUR_ROUNDS, *graph, "train.local_batch_size=100", f"algorithm={method}"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("baselines")
    equal = {name: [*TINY, *overrides] for name, overrides in METHODS.items()}
    unequal = {f"unequal_{method}": unequal_parts(root, method) for method in ("ggs", "full_sync")}
    return in_ranks(root, equal | unequal)


@pytest.mark.parametrize("name", METHODS)
def test_loopback_equals_processes(runs: Path, name: str) -> None:
    assert_loopback_equals_ranks(runs, name, *TINY, *METHODS[name])


@pytest.mark.parametrize("method", ["ggs", "full_sync"])
def test_unequal_parts_and_fewer_training_nodes_than_a_batch(runs: Path, method: str) -> None:
    assert_loopback_equals_ranks(runs, f"unequal_{method}", *unequal_parts(runs, method))
    found = rows(runs / f"unequal_{method}")
    assert len(found) == ROUNDS
    assert found[-1]["train_loss"] < found[0]["train_loss"]


def test_ggs_sends_models_as_psgd_pa_does_and_features_at_every_step(runs: Path) -> None:
    crossed = bytes_crossed(runs / "ggs")
    assert {kind for kind, _ in crossed} == {"parameters", "features", "control"}
    assert crossed["parameters", "up"] == crossed["parameters", "down"] == ROUNDS * P * model_sizes(runs / "ggs")[0]
    assert crossed["features", "between"] == sum(row["feature_bytes"] for row in rows(runs / "ggs"))
    for row in rows(runs / "ggs"):
        # A row is 16 float32 and its number an int32; on top, 8 bytes to every other machine and step.
        fetched, rest = divmod(row["feature_bytes"] - K * P * (P - 1) * 8, 16 * 4 + 4)
        assert rest == 0
        assert fetched >= K * P
        assert row["feature_row_bytes"] == fetched * 16 * 4
        assert row["exchanges"] == 1


def test_full_sync_sends_a_gradient_up_and_down_at_every_step(runs: Path) -> None:
    model, statistics = model_sizes(runs / "full_sync")
    crossed = bytes_crossed(runs / "full_sync")
    assert statistics > 0
    assert crossed["gradients", "up"] == crossed["gradients", "down"] == ROUNDS * K * P * (model - statistics)
    assert crossed["parameters", "down"] == P * model  # once, at the start
    assert crossed["parameters", "up"] == ROUNDS * P * statistics
    assert [row["exchanges"] for row in rows(runs / "full_sync")] == [K] * ROUNDS
    assert [row["gradient_bytes"] for row in rows(runs / "full_sync")] == [2 * K * P * (model - statistics)] * ROUNDS
    assert ("parameters", "up") not in bytes_crossed(runs / "full_sync_no_norm")


def test_a_cache_changes_bytes_and_no_bit(runs: Path) -> None:
    assert model_bytes(runs / "ggs") == model_bytes(runs / "ggs_cache")
    assert summary(runs / "ggs_cache")["feature_mb_per_round"] < summary(runs / "ggs")["feature_mb_per_round"]


def test_subgraph_approx_sends_parameters_and_tells_what_it_stores(runs: Path) -> None:
    assert {kind for kind, _ in bytes_crossed(runs / "subgraph_approx")} == {"parameters", "control"}
    found = summary(runs / "subgraph_approx")
    # 30 nodes of 16 float32 with a number each, for each of two parts of 300; the rest are edges, 8 bytes a pair.
    nodes = 2 * 30 * (16 * 4 + 4)
    assert found["halo_bytes"] > nodes
    assert (found["halo_bytes"] - nodes) % 8 == 0
    assert wire(runs / "subgraph_approx")["halo_bytes"] == found["halo_bytes"]
    assert summary(runs / "psgd_pa")["halo_bytes"] == 0


@pytest.mark.parametrize("method", ["ggs", "full_sync", "subgraph_approx"])
def test_a_machine_opens_its_part_and_what_its_method_reads(runs: Path, method: str) -> None:
    for rank in (1, 2):
        opened = opened_files(runs / method, rank)
        folders = {path.parent for path in opened if path.is_relative_to(runs / "parts")}
        [part] = {folder for folder in folders if folder.name == f"part{rank - 1}"}
        derived = part / "halo" / "0.1" if method == "subgraph_approx" else part.parent / "topology"
        assert folders == {part, derived}
        assert not (part.parent / "topology" / "features.npy").exists()
