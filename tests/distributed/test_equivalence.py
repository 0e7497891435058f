"""Same mathematics, same bits: spec equivalences over real processes."""

import json
from pathlib import Path

import pytest
import torch

from llcg_dist import train
from llcg_dist.config.compose import load_config
from tests.distributed.conftest import BASELINES, TINY, ZOO, own_graph
from tests.helpers.jobs import llcg, rows, summary, torchrun

LOOPBACK = {"llcg": [], "gcn": ["model=gcn", "algorithm.averaging=train_nodes"]} | BASELINES


def model_bytes(run_dir: Path) -> bytes:
    return (run_dir / "model.pt").read_bytes()


def test_two_runs_of_a_seed_give_the_same_model_file(runs: Path) -> None:
    assert model_bytes(runs / "llcg") == model_bytes(runs / "again")
    assert model_bytes(runs / "llcg") != model_bytes(runs / "other_seed")


def test_evaluation_changes_nothing_that_is_learned(runs: Path) -> None:
    assert model_bytes(runs / "llcg") == model_bytes(runs / "unjudged")
    assert all(row["val_score"] is None for row in rows(runs / "unjudged"))


def test_llcg_without_correction_is_psgd_pa(runs: Path) -> None:
    assert model_bytes(runs / "llcg_s0") == model_bytes(runs / "psgd_pa")
    assert model_bytes(runs / "llcg") != model_bytes(runs / "psgd_pa")


@pytest.mark.parametrize(("name", "overrides"), LOOPBACK.items())
def test_loopback_equals_processes(runs: Path, name: str, overrides: list[str]) -> None:
    settings = [*TINY, f"partition.root={runs}/parts", "cluster.backend=loopback", f"run_dir={runs}/loopback_{name}"]
    torch.set_num_threads(1)
    train.run(load_config([*settings, *overrides]), train.Rank())
    assert model_bytes(runs / name) == model_bytes(runs / f"loopback_{name}")
    for real, looped in zip(rows(runs / name), rows(runs / f"loopback_{name}"), strict=True):
        assert without_times(real) == without_times(looped)
    assert in_rounds(runs / name) == in_rounds(runs / f"loopback_{name}")


def without_times(row: dict) -> dict:
    """All columns but those that depend on speed: what was measured is the same to the last bit."""
    return {key: value for key, value in row.items() if not key.startswith(("seconds", "checkpoint"))}


def in_rounds(run_dir: Path) -> list[dict]:
    """What wire.json counts of the rounds; loopback has no handshake."""
    messages = json.loads((run_dir / "wire.json").read_text())["messages"]
    return [message for message in messages if message["phase"] == "round"]


@pytest.mark.parametrize(("name", "method"), ZOO)
def test_every_model_trains_over_real_processes(runs: Path, name: str, method: str) -> None:
    losses = [row["train_loss"] for row in rows(runs / f"{name}-{method}")]
    assert losses[-1] < losses[0]
    state = torch.load(runs / f"{name}-{method}" / "model.pt", weights_only=True)
    assert all(torch.isfinite(tensor).all() for tensor in state.values())


def test_parts_not_ranks_decide_the_bits(runs: Path) -> None:
    """Rank 1's disk holds part 1 only and rank 2's part 0 only; rank 0's holds no part at all."""
    assert model_bytes(runs / "apart") == model_bytes(runs / "llcg")
    assert json.loads((runs / "apart" / "logs" / "ranks.json").read_text())["rank_of_part"] == [2, 1]


def test_a_machine_opens_no_file_of_another_part(runs: Path) -> None:
    for rank in (1, 2):
        opened = json.loads(Path(f"{runs}/llcg.opened.{rank}.json").read_text())
        store_files = [Path(path) for path in opened if path.startswith(f"{runs}/parts/")]
        assert {path.parent.name for path in store_files} == {f"part{rank - 1}"}
        assert {"indptr.npy", "features.npy"} <= {path.name for path in store_files}


def test_bytes_are_exactly_one_model_per_machine_and_direction(runs: Path) -> None:
    state = torch.load(runs / "llcg" / "model.pt", weights_only=True)
    flat_bytes = 4 * sum(tensor.numel() for tensor in state.values() if tensor.is_floating_point())
    for row in rows(runs / "llcg"):
        assert row["bytes_up"] == row["bytes_down"] == 2 * flat_bytes
        assert row["feature_bytes"] == row["gradient_bytes"] == 0
        assert 0 < row["control_bytes"] <= 2 * 4096
        assert row["exchanges"] == 1
    assert [row["round"] for row in rows(runs / "llcg")] == [1, 2, 3, 4]


def test_only_parameters_and_a_little_control_cross(runs: Path) -> None:
    wire = json.loads((runs / "llcg" / "wire.json").read_text())
    assert {message["kind"] for message in wire["messages"]} == {"parameters", "control"}
    for message in wire["messages"]:
        itemsize = torch.empty(0, dtype=getattr(torch, message["dtype"])).element_size()
        assert message["bytes"] == message["elements"] * itemsize * message["count"]
    control = sum(m["bytes"] for m in wire["messages"] if m["kind"] == "control" and m["phase"] == "round")
    assert 0 < control <= 4 * 2 * 4096
    assert summary(runs / "llcg")["total_bytes"] == sum(message["bytes"] for message in wire["messages"])


@pytest.mark.parametrize(("name", "dtype", "share"), [("int8", "int8", 0.28), ("bfloat16", "bfloat16", 0.5)])
def test_rounded_models_are_counted_as_sent(runs: Path, name: str, dtype: str, share: float) -> None:
    """The model of these tests is small: scales and statistics weigh more than in a real one."""
    wire = json.loads((runs / name / "wire.json").read_text())
    models = [message for message in wire["messages"] if message["kind"] == "parameters"]
    assert {message["dtype"] for message in models} == {dtype}
    for row, whole in zip(rows(runs / name), rows(runs / "llcg"), strict=True):
        assert row["bytes_up"] == row["bytes_down"] <= share * whole["bytes_up"]
    assert model_bytes(runs / name) != model_bytes(runs / "llcg")


def test_psgd_pa_and_full_sync_on_one_machine_are_single(tmp_path: Path) -> None:
    common = ["experiment=tiny", "cluster.num_machines=1", f"partition.root={tmp_path}/parts"]
    for method in ("psgd_pa", "full_sync", "single"):
        outcome = llcg("train", f"algorithm={method}", *common, f"run_dir={tmp_path}/{method}")
        assert outcome.code == 0, outcome.err
        assert outcome.err == ""
    for method in ("psgd_pa", "full_sync"):
        assert model_bytes(tmp_path / method) == model_bytes(tmp_path / "single")
    assert summary(tmp_path / "single")["total_bytes"] == 0
    assert summary(tmp_path / "psgd_pa")["total_bytes"] > 0


def test_torchrun_by_hand_is_the_same_job(runs: Path) -> None:
    settings = [*TINY, f"partition.root={runs}/parts", f"run_dir={runs}/by_hand"]
    outcome = torchrun(3, "-m", "llcg_dist.train", *settings)
    assert outcome.code == 0, outcome.err
    assert model_bytes(runs / "by_hand") == model_bytes(runs / "llcg")


def test_ggs_and_full_sync_are_full_batch_gradient_descent(tmp_path: Path) -> None:
    """All training nodes, all neighbours, K=1, SGD, nothing random, as many training nodes on either machine."""
    plain = ["algorithm.K=1", "train.optimizer=sgd", "train.local_lr=0.1", "model.norm=none", "model.dropout=0"]
    whole = ["sampling.fanout=-1", "train.local_batch_size=1000", "cluster.num_machines=2", "cluster.backend=loopback"]
    common = [*own_graph(tmp_path / "equal", (30, 30)), *plain, *whole, f"partition.root={tmp_path}/parts"]
    models = {}
    for method in ("single", "ggs", "full_sync", "psgd_pa"):
        train.run(load_config([*common, f"algorithm={method}", f"run_dir={tmp_path}/{method}"]), train.Rank())
        models[method] = torch.load(tmp_path / method / "model.pt", weights_only=True)
    for name, expected in models["single"].items():
        torch.testing.assert_close(models["ggs"][name], expected)
        torch.testing.assert_close(models["full_sync"][name], expected)
    assert any(not torch.allclose(models["psgd_pa"][n], expected) for n, expected in models["single"].items())
