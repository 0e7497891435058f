"""Cluster time against the clock, where there is a core for each rank that works: the two must agree."""

import os
from pathlib import Path

import pytest

from tests.helpers.jobs import llcg
from tests.helpers.run_files import rows, summary

WORK = [
    "dataset.nodes=6000", "dataset.features=128", "model.hidden=128", "partition=random", "algorithm.rho=1.0",
    "algorithm.K=20", "num_rounds=8", "train.local_batch_size=256", "sampling.prefetch=off", "evaluate.every=0",
    "checkpoint.every=0", "logger=none", "cluster.threads=1",
]  # fmt: skip


@pytest.mark.full
@pytest.mark.alone
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="ranks would share one core")
@pytest.mark.parametrize("machines", [1, 2])
def test_cluster_seconds_are_those_of_the_clock_where_cores_suffice(tmp_path: Path, machines: int) -> None:
    """The server has nothing to do while machines train, so that two cores are enough for two of them. The least
    disturbed of the rounds is compared: others may have been held up by something else on this host."""
    places = [f"partition.root={tmp_path}/parts", f"run_dir={tmp_path}/run"]
    outcome = llcg("train", *WORK, f"cluster.num_machines={machines}", *places)
    assert outcome.code == 0, outcome.err
    found = rows(tmp_path / "run")[1:]  # the first round warms the caches
    assert min(row["cluster_seconds"] for row in found) > 0.1, "too short to say anything"
    least = min(row["seconds_round"] / row["cluster_seconds"] for row in found)
    assert 0.9 < least < 1.25
    whole = rows(tmp_path / "run")
    assert summary(tmp_path / "run")["cluster_seconds_total"] == pytest.approx(sum(r["cluster_seconds"] for r in whole))
    for row in found:
        assert row["cluster_seconds"] >= max(row["cpu_local_by_part"]) + row["cpu_correct"]
        assert len(row["cpu_local_by_part"]) == machines
