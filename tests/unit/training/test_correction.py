"""The server's steps after the machines' average, or beside their local steps; its trainer adds a number a step."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from llcg_dist.training.correction import Corrector, joined
from llcg_dist.training.fill_plan import FillPlan
from llcg_dist.training.screening import Models

STATISTICS = torch.tensor([False, False, True])
"""Two parameters and one running statistic."""


class AddsOne:
    """A trainer whose every step adds 1 to all."""

    def __init__(self) -> None:
        self.started: list[tuple[list[float], int, int]] = []
        self.prefetched: list[tuple[int, int]] = []

    def run_steps(self, theta: Tensor, round_: int, steps: int) -> None:
        self.started.append((theta.tolist(), round_, steps))
        self._theta = theta + steps

    def theta(self) -> Tensor:
        return self._theta

    def prefetch(self, round_: int, steps: int) -> None:
        self.prefetched.append((round_, steps))


class Chooses:
    """S=auto that chooses `steps`, and writes down what it was asked."""

    def __init__(self, steps: int) -> None:
        self.steps, self.calls = steps, list[str]()

    def note_updates(self, start: Tensor, updates: list[Tensor], weights: list[float]) -> None:
        self.calls.append(f"updates from {start[0]:g}")

    def choose(self, theta: Tensor, round_: int) -> tuple[int, dict[str, Any]]:
        self.calls.append(f"choose for round {round_} at {theta[0]:g}")
        return self.steps, {"auto_s_useful": 0.5}


def corrector(chooser: Any = None, plan: FillPlan | None = None, expected: int = 0) -> tuple[Corrector, AddsOne]:
    trainer = AddsOne()
    return Corrector(trainer, chooser, plan, expected), trainer  # type: ignore[arg-type]


def models(round_: int = 1, start: float = 0.0) -> Models:
    return Models(round_, torch.full((3,), start), [torch.ones(3)], [1.0], [], STATISTICS)


def test_the_new_model_by_hand() -> None:
    """Average 4, 8 and the server's 2, 4, a quarter of which: 3.5, 7; the running statistic is the average's."""
    average, server = torch.tensor([4.0, 8.0, 5.0]), torch.tensor([2.0, 4.0, 9.0])
    assert joined(average, server, 0.25, STATISTICS).tolist() == [3.5, 7.0, 5.0]
    assert joined(average, server, 0.5, STATISTICS).tolist() == [3.0, 6.0, 5.0]


@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=3, max_size=3), st.floats(0.01, 0.99))
def test_two_models_that_agree_are_the_result_and_others_enclose_it(values: list[float], weight: float) -> None:
    average = torch.tensor(values)
    assert torch.equal(joined(average, average.clone(), weight, STATISTICS), average)
    between = joined(average, torch.zeros(3), weight, torch.zeros(3, dtype=torch.bool))
    assert bool((between.abs() <= average.abs()).all())


def test_beside_starts_from_the_model_that_was_sent_and_joins_the_average() -> None:
    """Three steps from 10 lead to 13; with an average of 20 the mean is 16.5."""
    server, trainer = corrector()
    server.run_beside(torch.full((3,), 10.0), 7, 3)
    assert trainer.started == [([10.0] * 3, 7, 3)]
    assert server.join(torch.full((3,), 20.0), models(7, 10.0), 0.5).tolist() == [16.5, 16.5, 20.0]
    notes = server.take_notes()
    assert notes["S"] == 3
    assert notes.keys() == {"S", "seconds_correct_beside", "cpu_correct_beside"}


def test_after_starts_from_the_average() -> None:
    server, trainer = corrector(expected=2)
    server.prefetch(7)
    assert server.run(torch.full((3,), 20.0), models(7, 10.0), 2).tolist() == [22.0] * 3
    assert (trainer.prefetched, trainer.started) == ([(7, 2)], [([20.0] * 3, 7, 2)])
    assert server.take_notes().keys() == {"S", "seconds_prepare"}


def test_what_was_taken_beside_joins_one_average_only() -> None:
    server, _ = corrector()
    average = torch.full((3,), 20.0)
    server.run_beside(torch.zeros(3), 1, 1)
    server.join(average, models(), 0.5)
    assert server.join(average, models(2), 0.5) is average


@pytest.mark.parametrize("steps", [0, "auto"])
def test_no_step_leaves_the_average_as_it_is(steps: int | str) -> None:
    server, trainer = corrector(Chooses(0))
    average = torch.rand(3)
    server.run_beside(torch.zeros(3), 1, steps)
    assert server.join(average, models(), 0.5) is average
    assert (trainer.started, server.take_notes()["S"]) == ([], 0)


def test_fill_takes_the_steps_of_its_plan() -> None:
    server, trainer = corrector(plan=FillPlan(1.5, [2, 4], 16))
    for round_ in (1, 2):
        server.run_beside(torch.zeros(3), round_, "fill")
        assert server.take_notes()["S"] == trainer.started[-1][2] == 3 * round_


def test_auto_chooses_beside_at_the_model_that_was_sent_with_the_updates_of_the_round_before() -> None:
    chooser = Chooses(2)
    server, trainer = corrector(chooser)
    for round_ in (1, 2):
        server.run_beside(torch.full((3,), 5.0 * round_), round_, "auto")
        assert server.take_notes()["auto_s_useful"] == 0.5
        server.join(torch.zeros(3), models(round_, 5.0 * round_), 0.5)
    expected = ["choose for round 1 at 5", "updates from 5", "choose for round 2 at 10", "updates from 10"]
    assert chooser.calls == expected
    server.prefetch(3)
    assert trainer.prefetched == []


def test_auto_chooses_after_the_average_with_the_updates_of_the_same_round() -> None:
    chooser = Chooses(2)
    server, trainer = corrector(chooser)
    server.run(torch.full((3,), 8.0), models(1, 5.0), "auto")
    assert chooser.calls == ["updates from 5", "choose for round 1 at 8"]
    server.prefetch(2)
    assert trainer.prefetched == [(2, 2)]  # as many as in the last round
