"""Same mathematics, same bits: spec equivalences over real processes."""

import itertools
import json
import shutil
from pathlib import Path

import pytest
import torch

from llcg_dist import train
from llcg_dist.config import load_config
from llcg_dist.data.partition import ensure_store
from tests.distributed.jobs import llcg, rows, summary, torchrun

TINY = ["experiment=tiny", "cluster.num_machines=2", "num_rounds=4", "algorithm.K=3"]
ZOO = list(itertools.product(["gat", "appnp", "resgcn", "skip_sage", "mlp", "arch"], ["llcg", "psgd_pa"]))
PLAIN_AVERAGING = ["algorithm.batchnorm_stats=average", "algorithm.rho=1.0"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Jobs of one server and two machines, all in the same three processes."""
    root = tmp_path_factory.mktemp("several")
    tiny = [*TINY, f"partition.root={root}/parts"]
    store, _ = ensure_store(load_config(tiny))
    apart = {str(rank): [*TINY, f"partition.root={root}/host{rank}", f"run_dir={root}/apart"] for rank in range(3)}
    for rank, folders in enumerate((["global"], ["part1"], ["part0"])):
        host = root / f"host{rank}" / store.name
        for folder in folders:
            shutil.copytree(store / folder, host / folder)
    shutil.copy(store / "manifest.json", root / "host0" / store.name)
    jobs = [
        [*tiny, f"run_dir={root}/llcg"],
        [*tiny, f"run_dir={root}/again"],
        [*tiny, "seed=1", f"run_dir={root}/other_seed"],
        [*tiny, "evaluate.every=0", f"run_dir={root}/unjudged"],
        [*tiny, *PLAIN_AVERAGING, "algorithm.S=0", f"run_dir={root}/llcg_s0"],
        [*tiny, *PLAIN_AVERAGING, "algorithm=psgd_pa", f"run_dir={root}/psgd_pa"],
        [*tiny, "model=gcn", "algorithm.averaging=train_nodes", f"run_dir={root}/gcn"],
        apart,
        *(
            [*tiny, f"model={model}", f"algorithm={method}", f"run_dir={root}/{model}-{method}"]
            for model, method in ZOO
        ),
    ]
    (root / "jobs.json").write_text(json.dumps(jobs))
    outcome = torchrun(3, str(Path(__file__).with_name("several.py")), str(root / "jobs.json"))
    assert outcome.code == 0, outcome.err
    return root


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


@pytest.mark.parametrize(
    ("name", "overrides"), [("llcg", []), ("gcn", ["model=gcn", "algorithm.averaging=train_nodes"])]
)
def test_loopback_equals_processes(runs: Path, name: str, overrides: list[str]) -> None:
    settings = [*TINY, f"partition.root={runs}/parts", "cluster.backend=loopback", f"run_dir={runs}/loopback_{name}"]
    torch.set_num_threads(1)
    train.run(load_config([*settings, *overrides]), train.Rank())
    assert model_bytes(runs / name) == model_bytes(runs / f"loopback_{name}")
    counted = (
        "round",
        "local_steps",
        "train_loss",
        "val_score",
        "test_score",
        "bytes_up",
        "bytes_down",
        "control_bytes",
    )
    for real, looped in zip(rows(runs / name), rows(runs / f"loopback_{name}"), strict=True):
        assert [real[key] for key in counted] == [looped[key] for key in counted]


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


def test_psgd_pa_on_one_machine_is_single(tmp_path: Path) -> None:
    common = ["experiment=tiny", "cluster.num_machines=1", f"partition.root={tmp_path}/parts"]
    for method in ("psgd_pa", "single"):
        outcome = llcg("train", f"algorithm={method}", *common, f"run_dir={tmp_path}/{method}")
        assert outcome.code == 0, outcome.err
        assert outcome.err == ""
    assert model_bytes(tmp_path / "psgd_pa") == model_bytes(tmp_path / "single")
    assert summary(tmp_path / "single")["total_bytes"] == 0
    assert summary(tmp_path / "psgd_pa")["total_bytes"] > 0


def test_torchrun_by_hand_is_the_same_job(runs: Path) -> None:
    settings = [*TINY, f"partition.root={runs}/parts", f"run_dir={runs}/by_hand"]
    outcome = torchrun(3, "-m", "llcg_dist.train", *settings)
    assert outcome.code == 0, outcome.err
    assert model_bytes(runs / "by_hand") == model_bytes(runs / "llcg")
