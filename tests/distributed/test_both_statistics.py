"""evaluate.both_statistics: one training, both scores, each with the bits that a run of its own would have."""

from pathlib import Path

import pytest
import torch

from tests.distributed.jobs import rows
from tests.distributed.test_llcg_plus import alone

SCORES = ("val_score", "test_score")


@pytest.mark.parametrize("method", ["llcg_plus", "server_only", "full_sync", "single"])
@pytest.mark.parametrize(("kind", "other"), [("average", "recalibrate"), ("recalibrate", "average")])
def test_the_other_columns_are_those_of_a_run_with_the_other_setting(
    tmp_path: Path, method: str, kind: str, other: str
) -> None:
    """Also: what the run itself is judged by, and its models, do not change; and nothing that is learned differs."""

    def run(name: str, kind: str, *more: str) -> Path:
        settings = [f"algorithm={method}", f"algorithm.batchnorm_stats={kind}", "evaluate.every=2", *more]
        return alone(tmp_path, name, *settings)

    both = run("both", kind, "evaluate.both_statistics=true")
    own, apart = run("own", kind), run("apart", other)
    for found, mine, theirs in zip(rows(both), rows(own), rows(apart), strict=True):
        assert [found[key] for key in SCORES] == [mine[key] for key in SCORES]
        assert [found[f"{key}_{other}"] for key in SCORES] == [theirs[key] for key in SCORES]
    assert any(row["val_score"] != row[f"val_score_{other}"] for row in rows(both))
    for model in ("model.pt", "best.pt"):
        assert (both / model).read_bytes() == (own / model).read_bytes()
    one, two = (torch.load(folder / "model.pt", weights_only=True) for folder in (own, apart))
    assert {name for name in one if not torch.equal(one[name], two[name])} <= {n for n in one if "running" in n}
