"""bench/time_to_target.py: seconds to the target from the rows of a run, and the claim that is made of them."""

import pytest
from bench.time_to_target import Outcome, claims, markdown, times_sooner


def row(seconds: float, score: float) -> dict:
    sent = dict.fromkeys(("bytes_up", "bytes_down", "gradient_bytes", "feature_bytes", "control_bytes"), 1_000_000)
    return {"seconds_round": seconds, "val_score": score} | sent


ROWS = [row(2.0, 0.5), row(3.0, 0.9), row(4.0, 0.7), row(5.0, 0.95)]


@pytest.mark.parametrize(("target", "reached", "seconds", "rounds"), [
    (0.5, True, 2.0, 1), (0.9, True, 5.0, 2), (0.94, True, 14.0, 4), (0.96, False, 14.0, 4),
])  # fmt: skip
def test_the_first_model_that_is_good_enough_ends_the_clock(
    target: float, reached: bool, seconds: float, rounds: int
) -> None:
    found = Outcome.of(ROWS, target)
    assert (found.reached, found.seconds, found.rounds) == (reached, seconds, rounds)
    assert found.seconds_a_round == seconds / rounds
    assert found.megabytes_a_round == 5


def test_a_run_without_rows_has_reached_nothing() -> None:
    assert Outcome.of([], 0.0) == Outcome(False, 0.0, 0, 0.0, 0.0, 0.0)


def outcome(seconds: float, reached: bool = True) -> Outcome:
    return Outcome.of([row(seconds, 1.0 if reached else 0.2)], 0.9)


def test_a_run_that_was_given_up_is_a_lower_bound() -> None:
    assert times_sooner(outcome(20), outcome(600, reached=False)) == 30
    assert times_sooner(outcome(20, reached=False), outcome(600)) == 0


@pytest.mark.parametrize(
    ("seconds", "llcg_reaches", "holds"), [(99, True, False), (100, True, True), (500, False, False)]
)
def test_the_claim_is_ten_times_and_that_llcg_comes_there(seconds: float, llcg_reaches: bool, holds: bool) -> None:
    methods = {"llcg": outcome(10, llcg_reaches), "ggs": outcome(seconds, reached=False), "full_sync": outcome(seconds)}
    against_ggs, against_full_sync = claims({100: methods}, 100)
    assert (against_ggs.holds, against_full_sync.holds) == (holds, holds)
    assert "stopped at 20.0 %" in against_ggs.what
    assert "stopped" not in against_full_sync.what
    assert f"not in {seconds}" in markdown({100: methods})
