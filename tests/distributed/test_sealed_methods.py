"""Sealed, as jobs of our own launcher are by default, every kind of round has the bits of loopback.

Messages are opened where they arrive, in memory that the next one takes: what a rank keeps must be its own.
"""

from pathlib import Path

import pytest

from llcg_dist.comm.job_key import write_key
from tests.helpers.run_files import model_bytes, rows
from tests.helpers.training import TINY, in_ranks, on_loopback

MEASURED = ["diagnostics.every=2", "diagnostics.hessian_steps=2"]
JOBS = {
    "measured": MEASURED,
    "measured_int8": [*MEASURED, "algorithm.exchange_dtype=int8"],
    "auto_s": ["algorithm.S=auto", "algorithm.S_max=4", "train.server_batch_size=64"],
    "beside": ["algorithm.correction=beside", *MEASURED],
    "full_sync": ["algorithm=full_sync"],
    "ggs": ["algorithm=ggs"],
    "halo": ["algorithm=subgraph_approx", *MEASURED],
    "llcg_plus": ["algorithm=llcg_plus"],
    "own": ["algorithm=own", "algorithm.target=tests.helpers.careless_method.Careless"],
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("sealed")
    write_key(root / "job.key")
    key = f"cluster.key_file={root}/job.key"
    return in_ranks(root, {name: [*TINY, key, *overrides] for name, overrides in JOBS.items()})


@pytest.mark.parametrize("name", JOBS)
def test_a_sealed_job_has_the_bits_of_loopback(runs: Path, name: str) -> None:
    looped = on_loopback(runs, f"loopback_{name}", *TINY, *JOBS[name])
    assert model_bytes(runs / name) == model_bytes(looped)
    scores = ("val_score", "train_loss", "kappa_sq", "sigma_bias_sq", "S")
    for sealed, plain in zip(rows(runs / name), rows(looped), strict=True):
        assert [sealed.get(score) for score in scores] == [plain.get(score) for score in scores]
