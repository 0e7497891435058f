"""`llcg doctor` as a user runs it, and its predictions against real jobs."""

from pathlib import Path

import pytest

from llcg_dist.algorithms.registry import build_algorithm
from llcg_dist.config.compose import load_config
from llcg_dist.data.store import read_shard
from llcg_dist.doctor.memory import IMPORTS_PRIVATE_BYTES, IMPORTS_SHARED_BYTES
from llcg_dist.doctor.plan import make_plan
from tests.helpers.jobs import llcg
from tests.helpers.run_files import summary
from tests.helpers.training import cut

LARGE_CORRECTION = [
    "dataset.nodes=40000", "dataset.features=256", "dataset.degree=20", "model.hidden=256", "partition=random",
    "train.server_batch_size=1024", "cluster.num_machines=2", "cluster.backend=loopback", "algorithm.K=2",
    "num_rounds=2",
]  # fmt: skip


def test_a_sound_job_and_one_with_the_parts_of_another(tmp_path: Path) -> None:
    tiny = ["experiment=tiny", "partition.root=parts"]
    outcome = llcg("doctor", *tiny, cwd=tmp_path)
    assert outcome.code == 0, outcome
    assert outcome.err == ""
    for word in ("host", "versions", "parts", "memory", "traffic", "full_sync", "from 8 sampled batches", "torch"):
        assert word in outcome.out
    assert "\x1b" not in outcome.out  # colour is for terminals
    assert [path.name for path in tmp_path.iterdir()] == ["parts"]

    (store,) = (tmp_path / "parts").iterdir()
    store.rename(store.with_name(store.name.replace("-2-0", "-3-0")))
    outcome = llcg("doctor", *tiny, "cluster.num_machines=3", cwd=tmp_path)
    assert outcome.code == 2, outcome
    assert "keep this job from working" in outcome.only_error()
    assert "error cluster.num_machines=3, but the store has 2 part(s)" in outcome.out


@pytest.mark.full
def test_predicted_memory_is_what_a_job_takes(tmp_path: Path) -> None:
    """The correction dominates: the imports of a rank alone would not tell a good prediction from a bad one."""
    overrides = [*LARGE_CORRECTION, f"partition.root={tmp_path}/parts", f"run_dir={tmp_path}/run"]
    outcome = llcg("train", *overrides)
    assert outcome.code == 0, outcome.err
    store = cut(*overrides)
    graph, *parts = (read_shard(store / name).graph for name in ("global", "part0", "part1"))
    predicted = make_plan(build_algorithm(load_config(overrides)), graph, parts).ranks[0].resident
    measured = summary(tmp_path / "run")["peak_rss_mb_server"] * 2**20
    assert measured / 1.5 <= predicted <= 1.5 * measured
    imports = IMPORTS_PRIVATE_BYTES + IMPORTS_SHARED_BYTES
    assert (measured - imports) / 2 <= predicted - imports <= 2 * (measured - imports)
