"""Median and trimmed mean, coordinate by coordinate: by hand, and against what holds for any values."""

from random import Random

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from llcg_dist.config.compose import load_config
from llcg_dist.training.robust import coordinate_median, robust_aggregate, trimmed_machines, trimmed_mean

VALUES = st.floats(-(2.0**100), 2.0**100, width=32, allow_subnormal=False)
MODELS = st.integers(1, 9).flatmap(
    lambda machines: st.lists(st.lists(VALUES, min_size=3, max_size=3), min_size=machines, max_size=machines)
)


def vectors(rows: list[list[float]]) -> list[Tensor]:
    return [torch.tensor(row, dtype=torch.float32) for row in rows]


def test_by_hand() -> None:
    models = vectors([[1, 9], [2, 8], [4, 100], [1000, 6]])
    assert trimmed_mean(models, 0).tolist() == [251.75, 30.75]
    assert trimmed_mean(models, 1).tolist() == [3.0, 8.5]
    assert coordinate_median(models).tolist() == [3.0, 8.5]
    assert coordinate_median(models[:3]).tolist() == [2.0, 9.0]


@given(MODELS)
def test_the_median_is_numpys(rows: list[list[float]]) -> None:
    expected = np.median(np.array(rows, dtype=np.float32).astype(np.float64), axis=0).astype(np.float32)
    assert coordinate_median(vectors(rows)).tolist() == expected.tolist()


@given(MODELS, st.randoms(use_true_random=False), st.integers(0, 4))
def test_the_order_of_machines_changes_no_bit(rows: list[list[float]], random: Random, k: int) -> None:
    trimmed = min(k, (len(rows) - 1) // 2)
    shuffled = list(rows)
    random.shuffle(shuffled)
    assert torch.equal(trimmed_mean(vectors(rows), trimmed), trimmed_mean(vectors(shuffled), trimmed))


@given(MODELS, st.integers(0, 4), st.lists(VALUES, min_size=3, max_size=3))
def test_a_minority_moves_nothing_beyond_the_others(rows: list[list[float]], liars: int, lie: list[float]) -> None:
    trimmed = min(liars, (len(rows) - 1) // 2)
    honest = rows[trimmed:]
    found = trimmed_mean(vectors([lie] * trimmed + honest), trimmed)
    others = torch.stack(vectors(honest))
    assert bool((found >= others.amin(dim=0)).all())
    assert bool((found <= others.amax(dim=0)).all())


def test_pieces_of_a_large_model_are_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    models = [torch.linspace(-1, 1, 10) * scale for scale in (1.0, -3.0, 2.0)]
    entire = coordinate_median(models)
    monkeypatch.setattr("llcg_dist.training.robust._PIECE", 3)
    assert torch.equal(coordinate_median(models), entire)


def test_too_few_values_are_a_defect() -> None:
    with pytest.raises(ValueError, match="2 values, of which 1"):
        trimmed_mean(vectors([[1], [2]]), 1)


def test_what_the_settings_ask_for() -> None:
    models = vectors([[1], [2], [3], [4], [100]])
    median = load_config(["algorithm.aggregate=median"]).algorithm
    trims = load_config(["algorithm.aggregate=trimmed_mean", "algorithm.trim=0.2"]).algorithm
    assert robust_aggregate(median, models, 5).tolist() == [3.0]
    assert robust_aggregate(trims, models, 5).tolist() == [3.0]
    assert robust_aggregate(trims, models[:4], 5).tolist() == [2.5]  # still one at either end
    assert robust_aggregate(trims, models[:2], 5).tolist() == [1.5]  # nobody is left to trim
    assert [trimmed_machines(trims, machines) for machines in (4, 5, 9, 10)] == [0, 1, 1, 2]
    assert trimmed_machines(load_config(["algorithm.trim=0.3"]).algorithm, 10) == 3
