"""The quantities of the paper's theorems, as pure functions of gradients (float64 vectors of all learned parameters).

Notation as in Section 4 of the paper: κ² is the error of the machines' gradients because they do not see the full
graph, σ² the error that sampling adds, L the smoothness of the loss. Expectations over mini-batches are Monte-Carlo
estimates, returned with their standard error.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from llcg_dist.data import progress
from llcg_dist.data.rows import Array
from llcg_dist.data.views import View
from llcg_dist.sampling.minibatch import Sampler, load_batch
from llcg_dist.training.flat_vector import gradient_of
from llcg_dist.training.loss import loss

_PROBE_LENGTH = 1e-3
"""Length of the step of a difference quotient, relative to the norm of the parameters (at least 1)."""


def batch_gradient(
    model: nn.Module, view: View, sampler: Sampler, nodes: Array, seed: int, device: str = "cpu"
) -> Tensor:
    """The gradient [n] float64 of the mean loss over `nodes`, in eval mode: BatchNorm's running statistics, no
    dropout."""
    model.eval()
    batch = load_batch(view, sampler, nodes, seed).to(device)
    return gradient_of(loss(model(batch.features, batch.blocks), batch.labels, view.task), model)


def full_gradient(
    model: nn.Module, view: View, sampler: Sampler, nodes: Array, chunk: int, device: str = "cpu"
) -> Tensor:
    """The exact gradient [n] float64 of the mean loss over `nodes`, computed `chunk` nodes at a time to bound memory.

    `sampler` has to take all neighbours.
    """
    chunks = [nodes[start : start + chunk] for start in range(0, len(nodes), chunk)]
    total = torch.zeros(sum(p.numel() for p in model.parameters()), dtype=torch.float64)
    for chunk_nodes in chunks:
        total += batch_gradient(model, view, sampler, chunk_nodes, 0, device) * (len(chunk_nodes) / len(nodes))
        progress.advance()
    return total


@dataclass(frozen=True)
class GradientSamples:
    """Statistics of mini-batch gradients g, drawn in M repeats.

    In each repeat, batches of (nearly) equal size partition the nodes, so that the weighted mean of their gradients has
    no noise but that of neighbour sampling.
    """

    means: Tensor
    """[M, n]: the mean of g in each repeat."""
    squares: Tensor
    """[M]: the mean of ‖g‖² in each repeat."""

    @property
    def mean(self) -> Tensor:
        """[n]: the estimate of E g."""
        return self.means.mean(dim=0)

    @property
    def noise(self) -> float:
        """E‖mean − E g‖²: the variance that is left in `mean`."""
        repeats = len(self.means)
        return _squared_norm(self.means - self.mean) / (repeats * (repeats - 1))

    def variance(self) -> tuple[float, float]:
        """E‖g − E g‖² and its standard error."""
        estimate = self.squares.mean().item() - _squared_norm(self.mean) + self.noise
        return max(0.0, estimate), _standard_error(self.squares)

    def bias(self, exact: Tensor) -> tuple[float, float]:
        """‖E g − exact‖² and its error. The noise of `mean` adds its variance to the distance; it is subtracted."""
        offset, repeats = self.mean - exact, len(self.means)
        noise_along_offset = ((self.means - self.mean) @ offset).square().sum().item() / (repeats * (repeats - 1))
        return max(0.0, _squared_norm(offset) - self.noise), 2 * math.sqrt(noise_along_offset) + self.noise

    def mean_square(self, exact: Tensor) -> tuple[float, float]:
        """E‖g − exact‖² and its standard error."""
        per_repeat = self.squares - 2 * self.means @ exact + _squared_norm(exact)
        return max(0.0, per_repeat.mean().item()), _standard_error(per_repeat)


def sample_gradients(
    gradient: Callable[[Array, int], Tensor], nodes: Array, batch_size: int, repeats: int, rng: np.random.Generator
) -> GradientSamples:
    """Draws `gradient(batch, seed)` of ceil(n / batch_size) batches in each of `repeats` (at least 2) repeats."""
    means, squares = [], []
    for _ in range(repeats):
        batches = np.array_split(rng.permutation(nodes), math.ceil(len(nodes) / batch_size))
        mean, square = torch.zeros((), dtype=torch.float64), 0.0
        for batch in batches:
            weight, g = len(batch) / len(nodes), gradient(batch, int(rng.integers(2**31)))
            mean = mean + weight * g
            square += weight * _squared_norm(g)
            progress.advance()
        means.append(mean)
        squares.append(square)
    return GradientSamples(torch.stack(means), torch.tensor(squares, dtype=torch.float64))


def max_squared_distance(vectors: Sequence[Tensor], others: Sequence[Tensor]) -> float:
    """max over parts p of ‖vectors[p] − others[p]‖²: the form of κ_A² and κ_X²."""
    return max(_squared_norm(one - other) for one, other in zip(vectors, others, strict=True))


def squared_norm_of_mean(vectors: Sequence[Tensor]) -> float:
    """‖mean over parts of vectors[p]‖²: the form of G_local and G_global."""
    return _squared_norm(torch.stack(list(vectors)).mean(dim=0))


def smoothness(
    gradient_at: Callable[[Tensor], Tensor], point: Tensor, steps: int, rng: np.random.Generator
) -> tuple[float, float]:
    """The smoothness L near `point`, by power iteration on Hessian-vector products, and the last step's change of it.

    H v is the difference quotient of two gradients. Unlike a second derivative (which sparse products do not have) it
    also sees the kinks of ReLU, as the L of ‖∇L(x) − ∇L(y)‖ ≤ L ‖x − y‖ does.
    """
    length = _PROBE_LENGTH * max(1.0, point.norm().item())
    direction = torch.from_numpy(rng.standard_normal(len(point)))
    estimate = previous = 0.0
    for _ in range(steps):
        direction = direction / direction.norm().clamp(min=1e-300)
        forward, backward = gradient_at(point + length * direction), gradient_at(point - length * direction)
        direction = (forward - backward) / (2 * length)
        previous, estimate = estimate, direction.norm().item()
    return estimate, abs(estimate - previous)


def theorem1_bound(smoothness: float, num_machines: int, total_steps: int) -> float | None:
    """K ≤ √2 T^¼ / (8 L P^¾): the largest number of local steps per round that Theorem 1 allows; None where L is 0."""
    if not smoothness > 0:
        return None
    return math.sqrt(2) * total_steps**0.25 / (8 * smoothness * num_machines**0.75)


def theorem2_steps(
    kappa_sq: float,
    bias_sq: float,
    smoothness: float,
    num_machines: int,
    total_steps: int,
    g_local: float,
    g_global: float,
    local_steps: int,
) -> float | None:
    """S = ((κ² + 2 σ_bias²) / (1 − L √(P/T)) − G_local) · K ρ^r / G_global, at least 0: Theorem 2's correction steps.

    As derived in the appendix: the main text prints G_local in the denominator. None where T ≤ L² P, because the
    theorem does not cover such short runs, and where G_global is 0.
    """
    slack = 1 - smoothness * math.sqrt(num_machines / total_steps)
    if not slack > 0 or not g_global > 0:
        return None
    return max(0.0, ((kappa_sq + 2 * bias_sq) / slack - g_local) * local_steps / g_global)


def _squared_norm(vector: Tensor) -> float:
    return vector.square().sum().item()


def _standard_error(values: Tensor) -> float:
    return values.std().item() / math.sqrt(len(values))
