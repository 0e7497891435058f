"""The (epsilon, delta) of noisy updates, against the numbers of another accountant."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llcg_dist.config.compose import load_config
from llcg_dist.training.privacy import _delta, epsilon, privacy_line, privacy_of


@pytest.mark.parametrize(
    ("noise", "rounds", "delta", "expected"),
    [(1.0, 1, 1e-5, 4.377178), (1.0, 25, 1e-5, 33.103732), (4.0, 25, 1e-5, 5.679587), (10.0, 100, 1e-6, 4.886554),
     (0.5, 20, 1e-5, 77.330091)],
)  # fmt: skip
def test_as_dp_accounting_has_it(noise: float, rounds: int, delta: float, expected: float) -> None:
    """PLDAccountant of dp-accounting 0.6.0, whose intervals of 1e-4 round up in the ninth digit."""
    assert epsilon(noise, rounds, delta) == pytest.approx(expected, abs=1e-5)


@given(st.floats(0.1, 100), st.integers(1, 10_000), st.floats(1e-12, 0.1))
def test_the_least_epsilon_that_has_the_delta(noise: float, rounds: int, delta: float) -> None:
    found, mean = epsilon(noise, rounds, delta), rounds**0.5 / noise
    assert _delta(found, mean) <= delta * (1 + 1e-6)
    assert found == 0 or _delta(found * (1 - 1e-6), mean) >= delta * (1 - 1e-6)


@given(st.floats(0.1, 10), st.integers(1, 100))
def test_more_rounds_tell_more_and_more_noise_less(noise: float, rounds: int) -> None:
    assert epsilon(noise, rounds + 1, 1e-5) > epsilon(noise, rounds, 1e-5) > epsilon(noise * 2, rounds, 1e-5)


def test_what_a_summary_says() -> None:
    settings = load_config(["algorithm.clip=0.5", "algorithm.noise=4", "algorithm.batchnorm_stats=recalibrate"])
    found = privacy_of(settings.algorithm, 25)
    assert found is not None
    assert found["epsilon"] == pytest.approx(5.679587, abs=1e-5)
    assert (found["delta"], found["rounds"], found["noise"], found["clip"]) == (1e-5, 25, 4.0, 0.5)
    line = "updates of a machine over 25 rounds: epsilon 5.68 at delta 1e-05 (noise 4 x clip 0.5)"
    assert privacy_line(found) == line
    assert privacy_of(load_config(["algorithm.clip=0.5"]).algorithm, 25) is None
