"""evaluate.both_statistics: one training, both scores, each with the bits that a run of its own would have."""

from pathlib import Path

import pytest
import torch

from llcg_dist.core.evaluate import OTHER
from tests.distributed.jobs import rows
from tests.distributed.test_llcg_plus import alone

SCORES = ("val_score", "test_score")


@pytest.mark.parametrize("method", ["llcg_plus", "server_only", "full_sync"])
def test_the_other_columns_are_those_of_a_run_with_the_other_setting(tmp_path: Path, method: str) -> None:
    """Also: what a run itself is judged by, and its models, do not change; and nothing that is learned differs."""

    def run(name: str, kind: str, *more: str) -> Path:
        settings = [f"algorithm={method}", f"algorithm.batchnorm_stats={kind}", "evaluate.every=2", *more]
        return alone(tmp_path, name, *settings)

    apart = {kind: run(kind, kind) for kind in OTHER}
    for kind, other in OTHER.items():
        both = run(f"both_{kind}", kind, "evaluate.both_statistics=true")
        for found, mine, theirs in zip(rows(both), rows(apart[kind]), rows(apart[other]), strict=True):
            assert [found[key] for key in SCORES] == [mine[key] for key in SCORES]
            assert [found[f"{key}_{other}"] for key in SCORES] == [theirs[key] for key in SCORES]
        assert any(row["val_score"] != row[f"val_score_{other}"] for row in rows(both))
        for model in ("model.pt", "best.pt"):
            assert (both / model).read_bytes() == (apart[kind] / model).read_bytes()
    one, two = (torch.load(folder / "model.pt", weights_only=True) for folder in apart.values())
    assert {name for name in one if not torch.equal(one[name], two[name])} <= {n for n in one if "running" in n}
