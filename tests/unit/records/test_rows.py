"""Rows of metrics.jsonl: made from a round's result, and read back as far as they can be trusted."""

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import pytest

from llcg_dist.config.compose import load_config
from llcg_dist.errors import UserError
from llcg_dist.records.cluster_time import link_seconds
from llcg_dist.records.rows import (
    error_columns,
    read_rows,
    require_rows,
    round_row,
    row_line,
    statistics_columns,
)
from llcg_dist.stopwatch import Elapsed
from tests.helpers.round_results import TRAFFIC, evaluation, round_result


def test_a_row_by_hand() -> None:
    assert round_row(round_result(7, S=2), evaluation(0.75), Elapsed(0.3, 0.25)) == {
        "round": 7,
        "local_steps": 5,
        "train_loss": 1.25,
        "val_score": 0.75,
        "test_score": 0.5,
        "bytes_up": 100,
        "bytes_down": 200,
        "feature_bytes": 30,
        "gradient_bytes": 40,
        "control_bytes": 5,
        "exchanges": 1,
        "feature_id_bytes": 10,
        "feature_row_bytes": 20,
        "sealing_bytes": 160,
        "seconds_local": 1.5,
        "seconds_local_by_part": [1.5, 1.0],
        "seconds_exchange": 0.1,
        "seconds_correct": 0.2,
        "seconds_evaluate": 0.3,
        "seconds_round": 2.0,
        "cpu_local_by_part": [1.25, 0.75],
        "cpu_correct": 0.125,
        "cpu_evaluate": 0.25,
        "cluster_seconds": 1.375,
        "timeline": {"machines": []},
        "skipped_parts": [1],
        "local_steps_by_part": [3, 5],
        "S": 2,
    }


def test_a_link_makes_the_round_longer_by_what_its_bytes_take() -> None:
    """345 bytes pass the server's link, 30 of features the links of two machines: 360 bytes, 2880 bits at 1 kbit/s."""
    row = round_row(round_result(), None, Elapsed(), link_mbit=1e-3)
    assert row["cluster_seconds"] == pytest.approx(1.375 + 2.88)
    assert link_seconds(vars(TRAFFIC), 2, None) == link_seconds(vars(TRAFFIC), 0, 1.0) == 0.0


def test_what_is_not_finite_or_not_evaluated_is_null() -> None:
    row = round_row(round_result(kappa_sq=math.inf, S=2), evaluation(0.5, train_loss=math.nan), Elapsed())
    assert (row["train_loss"], row["kappa_sq"], row["S"], row["val_score"]) == (None, None, 2, 0.5)
    row = round_row(round_result(), None, Elapsed())
    assert (row["train_loss"], row["val_score"], row["test_score"]) == (None, None, None)
    assert "NaN" not in row_line(row)


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        (["algorithm=llcg"], {}),
        (["algorithm=llcg", "evaluate.both_statistics=true"], {"val_score_average": 0.4, "test_score_average": 0.25}),
        (
            ["algorithm=llcg_plus"],
            {"batchnorm_stats": "recalibrate", "val_score_average": 0.4, "test_score_average": 0.25}
            | {"val_score_recalibrate": 0.8, "test_score_recalibrate": 0.5},
        ),
    ],
)
def test_columns_of_both_kinds_of_statistics(overrides: list[str], expected: dict[str, Any]) -> None:
    config = load_config(overrides)
    assert statistics_columns(config, evaluation(0.8)) == expected
    assert statistics_columns(config, None) == dict.fromkeys(expected)


def lines(*rounds: int) -> list[str]:
    return [row_line(round_row(round_result(r), evaluation(0.1 * r), Elapsed())) for r in rounds]


def read(folder: Path, content: list[str], last_round: int) -> list[int]:
    (folder / "metrics.jsonl").write_text("".join(content))
    return [row["round"] for row in read_rows(folder, last_round)]


def test_rows_are_read_up_to_the_round_that_is_asked_for(tmp_path: Path) -> None:
    assert read_rows(tmp_path, 0) == []
    assert read(tmp_path, lines(1, 2, 3), 3) == [1, 2, 3]
    assert read(tmp_path, lines(1, 2, 3), 2) == [1, 2]
    assert read(tmp_path, lines(1, 2, 3), 0) == []
    assert read(tmp_path, lines(1, 2), 3) == [1, 2]  # the last round may not be evaluated yet


@pytest.mark.parametrize(
    "third",
    [
        lines(3)[0][:-20],
        lines(4)[0],
        "[]\n",
        "[" * 100_000 + "\n",
        json.dumps(json.loads(lines(3)[0]) | {"bytes_up": "many"}) + "\n",
        json.dumps(json.loads(lines(3)[0]) | {"val_score": 1}) + "\n",
    ],
    ids=["torn", "gap", "a list", "deep", "no number", "no fraction"],
)
def test_nothing_is_read_from_a_bad_row_on(tmp_path: Path, third: str) -> None:
    content = [*lines(1, 2), third, *lines(4, 5)]
    assert read(tmp_path, content, 3) == read(tmp_path, content, 4) == [1, 2]


def test_a_round_that_is_missing_is_named(tmp_path: Path) -> None:
    recorded = [{"round": r} for r in (1, 2, 3)]
    require_rows(3, recorded, tmp_path)
    with pytest.raises(UserError, match=f"^{tmp_path}/metrics.jsonl: round 2 is missing; put the file back"):
        require_rows(3, recorded[:1], tmp_path)


def test_estimated_scores_have_their_standard_errors_beside_them() -> None:
    sampled = load_config(["evaluate.sample=0.5"])
    estimate = dataclasses.replace(evaluation(0.8), val_error=0.02, test_error=None)
    assert error_columns(sampled, estimate) == {"val_score_error": 0.02, "test_score_error": None}
    assert error_columns(sampled, None) == {"val_score_error": None, "test_score_error": None}
    assert error_columns(load_config([]), evaluation(0.8)) == {}
