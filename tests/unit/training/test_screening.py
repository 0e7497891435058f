"""One machine's NaN must not spoil the model of all."""

import math

import pytest
import torch
from torch import Tensor

from llcg_dist.config.compose import load_config
from llcg_dist.errors import TrainingError
from llcg_dist.training.screening import Models, Screener

GOOD = torch.arange(3.0)
STATISTICS = torch.tensor([False, False, True])


def screener(*weights: float, on_nonfinite: str = "skip") -> Screener:
    config = load_config([f"on_nonfinite={on_nonfinite}", "train.local_lr=0.25"])
    return Screener(config, weights, STATISTICS, [f"part {part}" for part in range(len(weights))])


def screened(vectors: list[Tensor], *weights: float, on_nonfinite: str = "skip") -> Models:
    losses = [0.5] * len(vectors)
    return screener(*weights, on_nonfinite=on_nonfinite).models(vectors, losses, torch.zeros(3), round_=7)


def bad(value: float) -> Tensor:
    vector = GOOD.clone()
    vector[1] = value
    return vector


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_models_that_are_not_finite_are_left_out_with_their_weight(value: float) -> None:
    found = screened([GOOD, bad(value), GOOD + 1], 10.0, 20.0, 30.0)
    assert [theta.tolist() for theta in found.vectors] == [[0, 1, 2], [1, 2, 3]]
    assert (found.weights, found.skipped, found.round) == ([10.0, 30.0], [1], 7)
    assert found.statistics is STATISTICS


def test_finite_models_all_pass() -> None:
    found = screened([GOOD, -GOOD], 1.0, 2.0, on_nonfinite="fail")
    assert (len(found.vectors), found.weights, found.skipped) == (2, [1.0, 2.0], [])
    assert screened([]).vectors == []


def test_the_run_ends_with_part_round_loss_and_advice() -> None:
    with pytest.raises(TrainingError) as ended:
        screened([GOOD, bad(math.nan)], 1.0, 1.0, on_nonfinite="fail")
    assert str(ended.value) == (
        "part 1 sent parameters that are not finite in round 7 (its loss 0.5); "
        "lower train.local_lr (now 0.25), or average the others with on_nonfinite=skip"
    )


def test_there_must_be_one_to_go_on_with() -> None:
    with pytest.raises(TrainingError, match="part 0 sent"):
        screened([bad(math.nan), bad(math.inf)], 1.0, 1.0)


def test_gradients_are_screened_alike() -> None:
    vectors, weights = screener(10.0, 20.0, 30.0).gradients([GOOD, bad(math.nan), GOOD + 1], 3, round_=2)
    assert [vector.tolist() for vector in vectors] == [[0, 1, 2], [1, 2, 3]]
    assert weights == [10.0, 30.0]
    with pytest.raises(TrainingError, match="part 1 sent a gradient that is not finite in round 2"):
        screener(1.0, 1.0, on_nonfinite="fail").gradients([GOOD, bad(math.nan)], 3, round_=2)


@pytest.mark.parametrize("wrong", [torch.zeros(2), torch.zeros(1, 3), torch.zeros(3, dtype=torch.float64)])
def test_a_wrong_shape_or_type_names_the_part(wrong: Tensor) -> None:
    with pytest.raises(ValueError, match="part 1 sent"):
        screened([GOOD, wrong], 1.0, 1.0)


@pytest.mark.parametrize("weight", [0.0, -1.0, math.inf, math.nan])
def test_a_wrong_weight_names_the_part(weight: float) -> None:
    with pytest.raises(ValueError, match="part 1 has the weight"):
        screened([GOOD, GOOD], 1.0, weight)


def test_a_missing_model_is_a_defect() -> None:
    with pytest.raises(ValueError, match="zip"):
        screened([GOOD], 1.0, 1.0)


def judged(screen: str, vectors: list[Tensor], on_nonfinite: str = "fail") -> Models:
    settings = [f"algorithm.screen={screen}", f"on_nonfinite={on_nonfinite}", "algorithm.screen_factor=5"]
    names = [f"rank {part + 1} (part {part})" for part in range(len(vectors))]
    screening = Screener(load_config(settings), [1.0, 2.0, 3.0, 4.0][: len(vectors)], STATISTICS, names)
    return screening.models(vectors, [0.5] * len(vectors), torch.zeros(3), round_=7)


FAR = [torch.tensor([value, 0.0, 9.0]) for value in (1.0, -1000.0, 2.0, 3.0)]
WARNING = (
    "rank 2 (part 1) sent parameters 500 times as far from the model it was sent as the median "
    "(algorithm.screen_factor=5): "
)


@pytest.mark.parametrize(
    ("screen", "done"),
    [("warn", "used as it is"), ("clip", "shortened to that"), ("refuse", "left out of the average")],
)
def test_an_update_that_is_far_away_is_told_and_recorded(screen: str, done: str) -> None:
    found = judged(screen, FAR)
    assert found.warnings == [WARNING + done]
    assert found.notes["update_lengths"] == [1.0, 1000.0, 2.0, 3.0]
    assert found.notes["screened"] == [{"part": 1, "of": "parameters", "ratio": 500.0, "action": screen}]
    expected = {"warn": [1.0, -1000.0, 2.0, 3.0], "clip": [1.0, -10.0, 2.0, 3.0], "refuse": [1.0, 2.0, 3.0]}[screen]
    assert [vector[0].item() for vector in found.vectors] == expected
    assert found.weights == ([1.0, 3.0, 4.0] if screen == "refuse" else [1.0, 2.0, 3.0, 4.0])
    assert found.skipped == []


def test_off_looks_at_nothing() -> None:
    found = judged("off", FAR)
    assert (found.warnings, found.notes) == ([], {})
    assert all(kept is sent for kept, sent in zip(found.vectors, FAR, strict=True))


def test_where_nothing_is_far_away_the_vectors_are_those_that_were_sent() -> None:
    near = [GOOD + 1, GOOD + 2, GOOD + 4]
    for screen in ("warn", "clip", "refuse"):
        found = judged(screen, near)
        assert (found.warnings, found.notes["screened"]) == ([], [])
        assert all(kept is sent for kept, sent in zip(found.vectors, near, strict=True))


def test_refuse_leaves_out_what_is_not_finite_too() -> None:
    found = judged("refuse", [GOOD + 1, bad(math.nan), GOOD + 2, GOOD * 1e30])
    assert (len(found.vectors), found.skipped, found.weights) == (2, [1], [1.0, 3.0])
    assert found.notes["update_lengths"][1] is None
    assert [entry["part"] for entry in found.notes["screened"]] == [3]
    with pytest.raises(TrainingError, match=r"part 1\) sent parameters that are not finite"):
        judged("clip", [GOOD + 1, bad(math.nan), GOOD + 2])


def test_innocents_whose_model_overflows_later_are_not_blamed_alone() -> None:
    names = [f"part {part}" for part in range(3)]
    screening = Screener(load_config([]), [1.0] * 3, STATISTICS, names)
    screening.models([GOOD + 1, GOOD * 1e30, GOOD + 2], [0.5] * 3, torch.zeros(3), round_=7)
    with pytest.raises(TrainingError, match="part 0 sent .* in round 8 .*; in round 7 part 1 sent parameters .* times"):
        screening.models([bad(math.nan)] * 3, [0.5] * 3, torch.zeros(3), round_=8)
