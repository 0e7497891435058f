"""The outcome of a job of a sweep, from what its folder holds."""

import json
from pathlib import Path

import pytest

from llcg_dist.cli.sweep.job import finished_outcome


@pytest.mark.parametrize("score", [0.5, None])
def test_the_score_of_a_finished_job(tmp_path: Path, score: float | None) -> None:
    (tmp_path / "summary.json").write_text(json.dumps({"best_val_score": score}))
    outcome = finished_outcome("a", tmp_path)
    assert (outcome.code, outcome.score) == (0, score)


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"best_val_score": "high"}', '{"best_val_score": NaN}', "[" * 9999]
)
def test_a_summary_that_is_none_fails_its_job_alone(tmp_path: Path, content: str) -> None:
    (tmp_path / "summary.json").write_text(content)
    outcome = finished_outcome("a", tmp_path)
    assert outcome.code == 1
    assert str(outcome).startswith(f"failed: no readable summary.json in {tmp_path}")
