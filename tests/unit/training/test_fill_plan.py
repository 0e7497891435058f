"""S=fill: how many steps fit, by hand, and that trial steps take time and leave the machine as it was."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from llcg_dist.stopwatch import Elapsed
from llcg_dist.training import fill_plan
from llcg_dist.training.fill_plan import FillPlan, fill_ratio, seconds_of_step


def test_a_plan_by_hand() -> None:
    """2.5 steps of the server take as long as a local step: rounds of 1, 2, 3 and 9 local steps, at most 16."""
    plan = FillPlan(2.5, [1, 2, 3, 9], 16)
    assert [plan.steps(round_) for round_ in (1, 2, 3, 4)] == [2, 5, 7, 16]
    slow = FillPlan(0.25, [1, 4, 11], 16)
    assert [slow.steps(round_) for round_ in (1, 2, 3)] == [1, 1, 2]


@given(st.floats(1e-9, 1e300), st.lists(st.integers(1, 10**12), min_size=1, max_size=5), st.integers(1, 1000))
def test_the_steps_fit_unless_there_is_but_one(ratio: float, local_steps: list[int], limit: int) -> None:
    plan = FillPlan(ratio, local_steps, limit)
    for round_, local in enumerate(local_steps, start=1):
        steps = plan.steps(round_)
        assert 1 <= steps <= limit
        assert steps == 1 or steps <= ratio * local
        assert steps == limit or steps + 1 > math.floor(ratio * local)


def test_the_server_waits_for_the_slowest_machine() -> None:
    assert fill_ratio([0.02, 0.05, 0.03], 0.1) == pytest.approx(0.5)


class Counts:
    """A trainer whose steps take 7, 5, 3, 1 and 2 seconds of CPU."""

    def __init__(self) -> None:
        self.seconds, self.clock, self.calls = iter([7.0, 5.0, 3.0, 1.0, 2.0]), 0.0, list[str]()

    def begin_round(self, theta: torch.Tensor, round_: int) -> None:
        self.calls.append(f"round {round_}")

    def backward(self) -> None:
        self.calls.append("backward")

    def optimizer_step(self) -> None:
        self.clock += next(self.seconds)
        self.calls.append("step")


def test_the_first_steps_warm_up_and_of_the_others_the_median_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = Counts()
    monkeypatch.setattr(fill_plan, "now", lambda: Elapsed(0.0, trainer.clock))
    assert seconds_of_step(trainer, torch.zeros(3)) == 2.0  # type: ignore[arg-type]
    assert trainer.calls == ["round 0", *["backward", "step"] * 5]
