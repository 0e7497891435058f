"""When a run ends early: counted by hand, and a function of the rows alone."""

from typing import Any

import pytest

from llcg_dist.config.compose import load_config
from llcg_dist.training.early_stop import EarlyStopping

Row = dict[str, Any]


def rows(*scores: float | None) -> list[Row]:
    return [{"round": r, "val_score": score} for r, score in enumerate(scores, start=1)]


def stopping(seen: list[Row], *overrides: str) -> EarlyStopping:
    return EarlyStopping(load_config(["num_rounds=10", *overrides]), seen)


@pytest.mark.parametrize(
    ("overrides", "scores", "last"),
    [
        ([], [0.5] * 9, 10),
        (["early_stop.patience=0"], [0.5] * 9, 10),
        (["early_stop.patience=2"], [0.5, 0.6, 0.6, 0.5], 5),  # 3 and 4 are no better than 2; 5 was on its way
        (["early_stop.patience=2"], [0.5, 0.6, 0.6, 0.7, 0.1], 10),
        (["early_stop.patience=2"], [0.5, 0.6, 0.6, 0.7, 0.7, 0.7], 7),
        (["early_stop.patience=1"], [0.5, 0.5], 3),
        (["early_stop.patience=2", "early_stop.min_delta=0.15"], [0.5, 0.6, 0.64, 0.9], 4),  # measured from 0.5
        (["early_stop.patience=2", "early_stop.min_delta=0.15"], [0.5, 0.6, 0.66, 0.67], 10),
        (["early_stop.patience=2", "evaluate.every=2"], [None, 0.5, None, 0.5, None, 0.4], 7),
        (["early_stop.patience=2", "evaluate.every=2"], [None, 0.5, None, 0.4, 0.4], 10),  # 5: not one of those due
        (["early_stop.patience=2"], [0.5, None, None, None], 10),  # a score that is no number judges nothing
        (["early_stop.patience=8"], [0.5] * 9, 10),  # decided in round 9, and the last round is 10 anyway
    ],
)
def test_the_last_round(overrides: list[str], scores: list[float | None], last: int) -> None:
    found = stopping(rows(*scores), *overrides)
    assert found.last_round == last
    assert (found.reason is not None) == (last < 10)


def test_one_row_decides_and_later_ones_change_nothing() -> None:
    found = stopping([], "early_stop.patience=2")
    assert [found.see(row) for row in rows(0.5, 0.6, 0.6, 0.5, 0.9)] == [False, False, False, True, False]
    assert found.last_round == 5
    assert found.reason == ("validation score 0.6000 of round 2 not exceeded in 2 evaluations (early_stop.patience)")
