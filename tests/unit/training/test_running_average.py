"""evaluate.ema: the average of the rounds' models, by hand, and over a checkpoint."""

import pytest
import torch

from llcg_dist.training.running_average import RunningAverage


def test_weights_by_hand() -> None:
    """With beta 0.5 the third average has the weights 1/7, 2/7, 4/7."""
    average = RunningAverage(0.5)
    models = [torch.tensor([7.0, 0.0]), torch.tensor([0.0, 7.0]), torch.tensor([7.0, 7.0])]
    found = [average.step(theta, round_) for round_, theta in enumerate(models, start=1)]
    values = [vector.tolist() for vector in found if vector is not None]
    assert values == [pytest.approx(expected) for expected in ([7.0, 0.0], [7 / 3, 14 / 3], [5.0, 6.0])]
    assert average.scored(models[-1]) is found[2]


def test_earlier_averages_stay_as_they_are() -> None:
    """Models that wait for their evaluation must not change below it."""
    average, theta = RunningAverage(0.9), torch.ones(2)
    first = average.step(theta, 1)
    theta += 5
    average.step(theta, 2)
    assert first is not None
    assert first.tolist() == [1.0, 1.0]


def test_without_it_the_model_itself_is_scored() -> None:
    average, theta = RunningAverage(0.0), torch.ones(2)
    assert average.step(theta, 1) is None
    assert average.scored(theta) is theta
    average.load(None, 2)


def test_it_goes_on_from_a_checkpoint() -> None:
    models = [torch.randn(3, generator=torch.Generator().manual_seed(seed)) for seed in range(5)]
    whole, first, second = RunningAverage(0.8), RunningAverage(0.8), RunningAverage(0.8)
    expected = [whole.step(theta, round_) for round_, theta in enumerate(models, start=1)][-1]
    saved = [first.step(theta, round_) for round_, theta in enumerate(models[:3], start=1)][-1]
    second.load(saved, 3)
    found = [second.step(theta, round_) for round_, theta in enumerate(models[3:], start=4)][-1]
    assert found is not None
    assert expected is not None
    assert torch.equal(found, expected)


@pytest.mark.parametrize("saved", [None, torch.zeros(4)])
def test_a_checkpoint_without_an_average_of_this_model_is_refused(saved: torch.Tensor | None) -> None:
    with pytest.raises(ValueError, match="no average of models of 3"):
        RunningAverage(0.8).load(saved, 3)
