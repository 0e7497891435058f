"""Clipping and noise of a machine's update."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from llcg_dist.training.protection import Protection

NONE = torch.zeros(4, dtype=torch.bool)
LAST = torch.tensor([False, False, False, True])
START = torch.tensor([1.0, 2.0, 3.0, 4.0])
VALUES = st.floats(-(2.0**20), 2.0**20, width=32, allow_subnormal=False)


@given(
    st.lists(st.floats(-(2.0**20), 2.0**20, width=32, allow_subnormal=False), min_size=4, max_size=4),
    st.floats(1e-3, 1e3),
)
def test_no_update_is_longer_than_the_clip_and_none_turns(values: list[float], clip: float) -> None:
    theta = torch.tensor(values)
    found = Protection(clip, 0, NONE, 0, 2).applied(theta, START, 1)
    wanted, moved = theta.double() - START.double(), found.double() - START.double()
    assert float(moved.norm()) <= clip + 1e-5 * (1 + float(START.norm()))
    torch.testing.assert_close(moved, wanted * min(1.0, clip / float(wanted.norm())), rtol=1e-5, atol=1e-4)


def test_a_short_update_keeps_its_bits_and_statistics_are_not_clipped() -> None:
    theta = torch.tensor([1.5, 2.25, 3.0, 1000.0])
    assert torch.equal(Protection(1.0, 0, LAST, 0, 2).applied(theta, START, 1), theta)


def test_noise_has_its_size_and_statistics_go_back_as_they_came() -> None:
    size = 100_000
    statistics = torch.arange(size) >= size - 10
    theta, start = torch.full((size,), 5.0), torch.zeros(size)
    moved = Protection(2.0, 1.5, statistics, 7, 3).applied(theta, start, 4)
    assert moved[statistics].tolist() == [0.0] * 10
    assert float(moved[~statistics].std()) == pytest.approx(1.5 * 2.0, rel=0.02)
    assert float(moved[~statistics].mean()) == pytest.approx(0.0, abs=0.05)


def test_noise_depends_on_seed_part_and_round_alone() -> None:
    theta = START + 0.1

    def noisy(source: bytes | int = 7, stream: int = 3, round_: int = 4) -> torch.Tensor:
        return Protection(1.0, 1.0, NONE, source, stream).applied(theta, START, round_)

    assert torch.equal(noisy(), noisy())
    others = [noisy(source=8), noisy(stream=4), noisy(round_=5), noisy(source=b"secret")]
    assert all(not torch.equal(noisy(), other) for other in others)


def test_from_a_secret_another_update_has_another_noise() -> None:
    """Otherwise two results of a repeated round would tell their difference."""
    protection = Protection(1.0, 1.0, NONE, b"secret", 3)
    one, again, other = (protection.applied(START + far, START, 4) for far in (0.1, 0.1, 0.2))
    assert torch.equal(one, again)
    assert not torch.allclose(other - one, torch.full((4,), 0.1), atol=1e-3)
    seeded = Protection(1.0, 1.0, NONE, 7, 3)
    torch.testing.assert_close(
        seeded.applied(START + 0.2, START, 4) - seeded.applied(START + 0.1, START, 4), torch.full((4,), 0.1)
    )


@pytest.mark.parametrize("lost", [float("nan"), float("inf")])
def test_what_is_not_finite_is_left_to_the_server_which_learns_no_more_than_that(lost: float) -> None:
    theta = torch.tensor([lost, 1, 2, 3])
    assert torch.equal(Protection(1.0, 0.0, NONE, 7, 3).applied(theta, START, 1)[1:], theta[1:])
    assert Protection(1.0, 1.0, NONE, 7, 3).applied(theta, START, 1).isnan().all()
