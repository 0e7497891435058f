"""The theorems' quantities against numbers worked out by hand."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from llcg_dist.data.rows import Array
from llcg_dist.training.theory import (
    GradientSamples,
    max_squared_distance,
    sample_gradients,
    smoothness,
    squared_norm_of_mean,
    theorem1_bound,
    theorem2_steps,
)

VALUES = torch.tensor([[0.0, 1.0], [2.0, 1.0], [4.0, 5.0], [2.0, 5.0]], dtype=torch.float64)
"""The gradient of each of four nodes; their mean is (2, 3), their mean squared distance to it 2 + 4."""


def mean_of_nodes(batch: Array, seed: int) -> Tensor:
    return VALUES[torch.from_numpy(batch)].mean(dim=0)


def sampled(batch_size: int, repeats: int = 3) -> GradientSamples:
    return sample_gradients(mean_of_nodes, np.arange(4), batch_size, repeats, np.random.default_rng(0))


def test_batches_of_one_node_have_the_variance_of_the_nodes() -> None:
    found = sampled(1)
    assert torch.allclose(found.mean, torch.tensor([2.0, 3.0], dtype=torch.float64))
    assert found.variance() == pytest.approx((6.0, 0.0))
    assert found.bias(torch.tensor([2.0, 3.0], dtype=torch.float64)) == pytest.approx((0.0, 0.0))
    assert found.bias(torch.tensor([2.0, 1.0], dtype=torch.float64)) == pytest.approx((4.0, 0.0))
    assert found.mean_square(torch.tensor([2.0, 1.0], dtype=torch.float64)) == pytest.approx((10.0, 0.0))


def test_a_full_batch_has_no_variance() -> None:
    assert sampled(4).variance() == (pytest.approx(0.0, abs=1e-12), pytest.approx(0.0, abs=1e-12))


def test_batches_of_two_of_four_by_sampling_theory() -> None:
    """Without replacement the variance is that of the nodes times (1/B)·(N−B)/(N−1) = 1/3."""
    found, error = sampled(2, repeats=4000).variance()
    assert found == pytest.approx(2.0, abs=4 * error)
    assert 0 < error < 0.05


def test_noise_of_the_mean_is_not_taken_for_bias() -> None:
    """Sampling that is right on average and off by ±1 each time: a mean over 8 repeats is off by 1/8 in the square."""

    def noisy(batch: Array, seed: int) -> Tensor:
        return mean_of_nodes(batch, seed) + torch.from_numpy(np.random.default_rng(seed).choice([-1.0, 1.0], 2))

    exact = torch.tensor([2.0, 3.0], dtype=torch.float64)
    rng = np.random.default_rng(1)
    trials = [sample_gradients(noisy, np.arange(4), 4, 8, rng) for _ in range(300)]
    raw = np.mean([(trial.mean - exact).square().sum().item() for trial in trials])
    assert raw == pytest.approx(2 / 8, rel=0.2)
    assert np.mean([trial.noise for trial in trials]) == pytest.approx(2 / 8, rel=0.2)
    assert np.mean([trial.variance()[0] for trial in trials]) == pytest.approx(2.0, rel=0.05)
    estimates = [trial.bias(exact + 1) for trial in trials]
    assert np.mean([value for value, _ in estimates]) == pytest.approx(2.0, rel=0.1)
    assert np.mean([abs(value - 2) <= 2 * error for value, error in estimates]) > 0.9


def test_distances_by_hand() -> None:
    one, two = torch.tensor([3.0, 4.0]), torch.tensor([1.0, 0.0])
    assert max_squared_distance([one, two], [torch.zeros(2), torch.zeros(2)]) == 25.0
    assert squared_norm_of_mean([one, two]) == 8.0


def test_smoothness_of_a_quadratic_is_its_largest_eigenvalue_by_size() -> None:
    rotation = torch.linalg.qr(torch.from_numpy(np.random.default_rng(0).standard_normal((5, 5))))[0]
    hessian = rotation @ torch.diag(torch.tensor([1.0, -7.0, 2.0, 0.5, 3.0], dtype=torch.float64)) @ rotation.T
    point = torch.ones(5, dtype=torch.float64)
    found, error = smoothness(lambda x: hessian @ x, point, 40, np.random.default_rng(0))
    assert found == pytest.approx(7.0, rel=1e-6)
    assert error < 1e-6
    assert smoothness(torch.zeros_like, point, 3, np.random.default_rng(0)) == (0.0, 0.0)


def test_theorem_1() -> None:
    assert theorem1_bound(2.0, 16, 256) == pytest.approx(math.sqrt(2) * 4 / (8 * 2 * 8))
    assert theorem1_bound(0.0, 16, 256) is None


def test_theorem_2_is_the_appendix_form() -> None:
    # 1 − 2·√(4/64) = 1/2: (3 + 2·0.5)/0.5 − 1 = 7, times 10 local steps, over G_global 5.
    assert theorem2_steps(3.0, 0.5, 2.0, 4, 64, g_local=1.0, g_global=5.0, local_steps=10) == pytest.approx(14.0)
    assert theorem2_steps(0.1, 0.0, 2.0, 4, 64, g_local=1.0, g_global=5.0, local_steps=10) == 0.0


def test_theorem_2_does_not_speak_of_short_runs() -> None:
    assert theorem2_steps(3.0, 0.5, 4.0, 4, 64, g_local=1.0, g_global=5.0, local_steps=10) is None
