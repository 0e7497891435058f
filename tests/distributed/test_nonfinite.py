"""A machine whose parameters are not finite: named, or left out of the average."""

from pathlib import Path

import numpy as np
import pytest
import torch

from llcg_dist.errors import TrainingError
from tests.helpers.run_files import model_bytes, model_state, rows
from tests.helpers.training import cut, on_loopback

JOB = ["experiment=tiny", "algorithm=psgd_pa", "train.optimizer=sgd", "verify=sizes", "model.norm=none"]


def poison_part_1(root: Path, feature: float) -> None:
    """Gives part 1 features so large that its loss overflows."""
    features = np.load(cut(*JOB, f"partition.root={root}/parts") / "part1" / "features.npy", mmap_mode="r+")
    features[:] = feature
    features.flush()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
def test_a_machine_that_sends_nan_is_named(tmp_path: Path, dtype: str) -> None:
    poison_part_1(tmp_path, 1e38)
    with pytest.raises(
        TrainingError, match=r"rank 2 \(part 1\) sent parameters that are not finite in round 1 .*train.local_lr"
    ):
        on_loopback(tmp_path, "fails", *JOB, f"algorithm.exchange_dtype={dtype}")


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_a_machine_that_sends_nan_can_be_skipped(tmp_path: Path, dtype: str) -> None:
    """The model is that of part 0 alone: what part 1 holds does not change a bit."""
    models = []
    for feature in (1e38, -2e38):
        poison_part_1(tmp_path, feature)
        run = on_loopback(tmp_path, f"{feature}", *JOB, f"algorithm.exchange_dtype={dtype}", "on_nonfinite=skip")
        assert all(row["skipped_parts"] == [1] for row in rows(run))
        assert all(torch.isfinite(tensor).all() for tensor in model_state(run).values())
        models.append(model_bytes(run))
    assert models[0] == models[1]
