"""GGS, full synchronisation and subgraph approximation: what crosses, what is opened, and no machine left waiting."""

import json
from pathlib import Path

import pytest
import torch

from tests.helpers.jobs import rows, summary

P, K, ROUNDS = 2, 3, 4


def wire(run_dir: Path) -> dict[tuple[str, str], int]:
    """Bytes by kind and direction, over all rounds."""
    found: dict[tuple[str, str], int] = {}
    for message in json.loads((run_dir / "wire.json").read_text())["messages"]:
        if message["phase"] == "round":
            key = message["kind"], message["direction"]
            found[key] = found.get(key, 0) + message["bytes"]
    return found


def sizes(run_dir: Path) -> tuple[int, int]:
    """Bytes of the whole model and of BatchNorm's statistics."""
    state = torch.load(run_dir / "model.pt", weights_only=True)
    floats = {name: 4 * tensor.numel() for name, tensor in state.items() if tensor.is_floating_point()}
    return sum(floats.values()), sum(size for name, size in floats.items() if "running" in name)


def test_ggs_sends_models_as_psgd_pa_does_and_features_at_every_step(runs: Path) -> None:
    crossed = wire(runs / "ggs")
    assert {kind for kind, _ in crossed} == {"parameters", "features", "control"}
    assert ("features", "between") in crossed
    assert crossed["parameters", "up"] == crossed["parameters", "down"] == ROUNDS * P * sizes(runs / "ggs")[0]
    for row in rows(runs / "ggs"):
        assert row["feature_bytes"] > 0
        assert row["exchanges"] == 1
        # A row is 16 float32 and its number an int32; on top, 8 bytes to every other machine and step.
        assert (row["feature_bytes"] - K * P * (P - 1) * 8) % (16 * 4 + 4) == 0


def test_full_sync_sends_a_gradient_up_and_down_at_every_step(runs: Path) -> None:
    model, statistics = sizes(runs / "full_sync")
    crossed = wire(runs / "full_sync")
    assert statistics > 0
    assert crossed["gradients", "up"] == crossed["gradients", "down"] == ROUNDS * K * P * (model - statistics)
    assert crossed["parameters", "down"] == P * model  # once, at the start
    assert crossed["parameters", "up"] == ROUNDS * P * statistics
    assert [row["exchanges"] for row in rows(runs / "full_sync")] == [K] * ROUNDS
    assert [row["gradient_bytes"] for row in rows(runs / "full_sync")] == [2 * K * P * (model - statistics)] * ROUNDS
    assert ("parameters", "up") not in wire(runs / "full_sync_no_norm")


def test_a_cache_changes_bytes_and_no_bit(runs: Path) -> None:
    assert (runs / "ggs" / "model.pt").read_bytes() == (runs / "ggs_cache" / "model.pt").read_bytes()
    assert summary(runs / "ggs_cache")["feature_mb_per_round"] < summary(runs / "ggs")["feature_mb_per_round"]


def test_subgraph_approx_sends_parameters_and_tells_what_it_stores(runs: Path) -> None:
    assert {kind for kind, _ in wire(runs / "subgraph_approx")} == {"parameters", "control"}
    found = summary(runs / "subgraph_approx")
    # 30 nodes of 16 float32 with a number each, for each of two parts of 300; the rest are edges, 8 bytes a pair.
    nodes = 2 * 30 * (16 * 4 + 4)
    assert found["halo_bytes"] > nodes
    assert (found["halo_bytes"] - nodes) % 8 == 0
    assert json.loads((runs / "subgraph_approx" / "wire.json").read_text())["halo_bytes"] == found["halo_bytes"]
    assert summary(runs / "psgd_pa")["halo_bytes"] == 0


@pytest.mark.parametrize("method", ["ggs", "full_sync", "subgraph_approx"])
def test_a_machine_opens_its_part_and_what_its_method_reads(runs: Path, method: str) -> None:
    for rank in (1, 2):
        opened = json.loads(Path(f"{runs}/{method}.opened.{rank}.json").read_text())
        folders = {str(Path(path).parent) for path in opened if path.startswith(f"{runs}/parts/")}
        [store] = {folder for folder in folders if folder.endswith(f"/part{rank - 1}")}
        more = f"{store}/halo/0.1" if method == "subgraph_approx" else str(Path(store).parent / "topology")
        assert folders == {store, more}
        assert not Path(store).parent.joinpath("topology", "features.npy").exists()


@pytest.mark.parametrize("method", ["ggs", "full_sync"])
def test_unequal_parts_and_fewer_training_nodes_than_a_batch(runs: Path, method: str) -> None:
    found = rows(runs / f"one-{method}")
    assert len(found) == ROUNDS
    assert found[-1]["train_loss"] < found[0]["train_loss"]
