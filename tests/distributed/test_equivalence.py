"""Same mathematics, same bits: spec equivalences over real processes."""

import json
import shutil
from pathlib import Path

import pytest
import torch

from llcg_dist.comm.job_key import write_key
from tests.helpers.graph_files import two_part_graph
from tests.helpers.jobs import llcg, torchrun
from tests.helpers.run_files import bytes_crossed, model_bytes, model_sizes, model_state, rows, summary
from tests.helpers.training import (
    TINY,
    assert_loopback_equals_ranks,
    cut,
    in_ranks,
    opened_files,
    train_in_process,
)

BFLOAT16 = ["train.precision=bfloat16"]
PLAIN_AVERAGING = ["algorithm.batchnorm_stats=average", "algorithm.rho=1.0"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`apart`: rank 1's disk holds part 1 only and rank 2's part 0 only; rank 0's holds no part at all."""
    root = tmp_path_factory.mktemp("equivalence")
    store = cut(*TINY, f"partition.root={root}/parts")
    for rank, folder in enumerate(("global", "part1", "part0")):
        shutil.copytree(store / folder, root / f"host{rank}" / store.name / folder)
    shutil.copy(store / "manifest.json", root / "host0" / store.name)
    jobs = {
        "llcg": TINY,
        "again": TINY,
        "other_seed": [*TINY, "seed=1"],
        "never_evaluated": [*TINY, "evaluate.every=0"],
        "llcg_s0": [*TINY, *PLAIN_AVERAGING, "algorithm.S=0"],
        "psgd_pa": [*TINY, *PLAIN_AVERAGING, "algorithm=psgd_pa"],
        "bfloat16": [*TINY, *BFLOAT16],
    }
    return in_ranks(root, jobs | {"apart": {rank: [*TINY, f"partition.root={root}/host{rank}"] for rank in range(3)}})


def test_two_runs_of_a_seed_give_the_same_model_file(runs: Path) -> None:
    assert model_bytes(runs / "llcg") == model_bytes(runs / "again")
    assert model_bytes(runs / "llcg") != model_bytes(runs / "other_seed")


def test_evaluation_changes_nothing_that_is_learned(runs: Path) -> None:
    assert model_bytes(runs / "llcg") == model_bytes(runs / "never_evaluated")
    assert all(row["val_score"] is None for row in rows(runs / "never_evaluated"))


def test_llcg_without_correction_is_psgd_pa(runs: Path) -> None:
    assert model_bytes(runs / "llcg_s0") == model_bytes(runs / "psgd_pa")
    assert model_bytes(runs / "llcg") != model_bytes(runs / "psgd_pa")


def test_loopback_equals_processes(runs: Path) -> None:
    """Of the other methods, models and message types too: see the files that are named after them."""
    assert_loopback_equals_ranks(runs, "llcg", *TINY)


def test_loopback_equals_processes_in_bfloat16(runs: Path) -> None:
    assert_loopback_equals_ranks(runs, "bfloat16", *TINY, *BFLOAT16)
    assert model_bytes(runs / "bfloat16") != model_bytes(runs / "llcg")
    assert all(tensor.dtype != torch.bfloat16 for tensor in model_state(runs / "bfloat16").values())


def test_parts_not_ranks_decide_the_bits(runs: Path) -> None:
    assert model_bytes(runs / "apart") == model_bytes(runs / "llcg")
    assert json.loads((runs / "apart" / "logs" / "ranks.json").read_text())["rank_of_part"] == [2, 1]


def test_a_machine_opens_no_file_of_another_part(runs: Path) -> None:
    for rank in (1, 2):
        store_files = [path for path in opened_files(runs / "llcg", rank) if path.is_relative_to(runs / "parts")]
        assert {path.parent.name for path in store_files} == {f"part{rank - 1}"}
        assert {"indptr.npy", "features.npy"} <= {path.name for path in store_files}


def test_torchrun_by_hand_is_the_same_job(runs: Path) -> None:
    settings = [*TINY, f"partition.root={runs}/parts", f"run_dir={runs}/by_hand", f"cluster.key_file={runs}/job.key"]
    write_key(runs / "job.key")
    outcome = torchrun(3, "-m", "llcg_dist.train", *settings)
    assert outcome.code == 0, outcome.err
    assert "warning: whoever reaches this job's store" not in outcome.out
    assert model_bytes(runs / "by_hand") == model_bytes(runs / "llcg")
    key = (runs / "job.key").read_bytes().strip()
    assert not any(key in path.read_bytes() for path in (runs / "by_hand").rglob("*") if path.is_file())


def test_psgd_pa_and_full_sync_on_one_machine_are_single(tmp_path: Path) -> None:
    common = ["experiment=tiny", "cluster.num_machines=1", f"partition.root={tmp_path}/parts"]
    for method in ("psgd_pa", "full_sync", "single"):
        outcome = llcg("train", f"algorithm={method}", *common, f"run_dir={tmp_path}/{method}")
        assert outcome.code == 0, outcome.err
        assert outcome.err == ""
    for method in ("psgd_pa", "full_sync"):
        assert model_bytes(tmp_path / method) == model_bytes(tmp_path / "single")
    assert summary(tmp_path / "single")["total_bytes"] == 0
    model, _ = model_sizes(tmp_path / "psgd_pa")
    crossed = bytes_crossed(tmp_path / "psgd_pa")
    assert crossed["parameters", "up"] == crossed["parameters", "down"] == len(rows(tmp_path / "psgd_pa")) * model


def test_ggs_and_full_sync_are_full_batch_gradient_descent(tmp_path: Path) -> None:
    """All training nodes, all neighbours, K=1, SGD, nothing random, as many training nodes on either machine."""
    plain = ["algorithm.K=1", "train.optimizer=sgd", "train.local_lr=0.1", "model.norm=none", "model.dropout=0"]
    full_batches = ["sampling.fanout=-1", "train.local_batch_size=1000", "cluster.num_machines=2"]
    common = [*two_part_graph(tmp_path / "equal", (30, 30)), *plain, *full_batches, f"partition.root={tmp_path}/parts"]
    models = {}
    for method in ("single", "ggs", "full_sync", "psgd_pa"):
        train_in_process(*common, f"algorithm={method}", f"run_dir={tmp_path}/{method}")
        models[method] = model_state(tmp_path / method)
    for name, expected in models["single"].items():
        torch.testing.assert_close(models["ggs"][name], expected)
        torch.testing.assert_close(models["full_sync"][name], expected)
    assert any(not torch.allclose(models["psgd_pa"][n], expected) for n, expected in models["single"].items())
