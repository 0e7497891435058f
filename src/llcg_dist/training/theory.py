"""The quantities of the paper's theorems, as pure functions of gradients (float64 vectors of all learned parameters).

Notation as in Section 4 of the paper: κ² for what machines lose by not seeing the whole graph, σ² for what sampling
adds, L for the smoothness of the loss. Expectations over mini-batches are Monte-Carlo estimates and say how far they
may be off (one standard error).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from llcg_dist.data.rows import Array
from llcg_dist.data.views import View
from llcg_dist.sampling.minibatch import Sampler, load_batch
from llcg_dist.training.flat_vector import gradient_of
from llcg_dist.training.loss import loss

_PROBE = 1e-3
"""How far a difference quotient reaches, relative to the length of the parameters (at least 1)."""


def batch_gradient(
    model: nn.Module, view: View, sampler: Sampler, nodes: Array, seed: int, device: str = "cpu"
) -> Tensor:
    """[n] float64: of the mean loss over `nodes`, with BatchNorm's running statistics and without dropout."""
    model.eval()
    batch = load_batch(view, sampler, nodes, seed).to(device)
    return gradient_of(loss(model(batch.features, batch.blocks), batch.labels, view.task), model)


def full_gradient(
    model: nn.Module, view: View, sampler: Sampler, nodes: Array, chunk: int, device: str = "cpu"
) -> Tensor:
    """The same over many nodes, `chunk` of them in memory at a time; the sampler takes all neighbours."""
    pieces = [nodes[start : start + chunk] for start in range(0, len(nodes), chunk)]
    total = torch.zeros(sum(p.numel() for p in model.parameters()), dtype=torch.float64)
    for piece in pieces:
        total += batch_gradient(model, view, sampler, piece, 0, device) * (len(piece) / len(nodes))
    return total


@dataclass(frozen=True)
class Sampled:
    """Mini-batch gradients g, drawn in M repeats; in each, batches of (nearly) equal size partition the nodes, so that
    their weighted mean has no noise but that of neighbour sampling."""

    means: Tensor
    """[M, n]"""
    squares: Tensor
    """[M]: the mean of ‖g‖²."""

    @property
    def mean(self) -> Tensor:
        return self.means.mean(dim=0)

    @property
    def noise(self) -> float:
        """E‖mean − E g‖²: what is left of the sampling noise in `mean`."""
        repeats = len(self.means)
        return _square(self.means - self.mean) / (repeats * (repeats - 1))

    def variance(self) -> tuple[float, float]:
        """E‖g − E g‖² and its error."""
        found = self.squares.mean().item() - _square(self.mean) + self.noise
        return max(0.0, found), _standard_error(self.squares)

    def bias(self, exact: Tensor) -> tuple[float, float]:
        """‖E g − exact‖² and its error. The noise of the mean adds its square to the distance, which is taken off."""
        off, repeats = self.mean - exact, len(self.means)
        along = ((self.means - self.mean) @ off).square().sum().item() / (repeats * (repeats - 1))
        return max(0.0, _square(off) - self.noise), 2 * math.sqrt(along) + self.noise

    def mean_square(self, exact: Tensor) -> tuple[float, float]:
        """E‖g − exact‖² and its error."""
        each = self.squares - 2 * self.means @ exact + _square(exact)
        return max(0.0, each.mean().item()), _standard_error(each)


def sample_gradients(
    gradient: Callable[[Array, int], Tensor], nodes: Array, batch_size: int, repeats: int, rng: np.random.Generator
) -> Sampled:
    """`gradient(batch, seed)` of ceil(n / batch_size) batches, `repeats` (at least 2) times."""
    means, squares = [], []
    for _ in range(repeats):
        batches = np.array_split(rng.permutation(nodes), math.ceil(len(nodes) / batch_size))
        mean, square = torch.zeros((), dtype=torch.float64), 0.0
        for batch in batches:
            weight, found = len(batch) / len(nodes), gradient(batch, int(rng.integers(2**31)))
            mean = mean + weight * found
            square += weight * _square(found)
        means.append(mean)
        squares.append(square)
    return Sampled(torch.stack(means), torch.tensor(squares, dtype=torch.float64))


def largest_square(vectors: Sequence[Tensor], others: Sequence[Tensor]) -> float:
    """max over p of ‖vectors[p] − others[p]‖²: κ_A² and κ_X²."""
    return max(_square(one - other) for one, other in zip(vectors, others, strict=True))


def square_of_mean(vectors: Sequence[Tensor]) -> float:
    return _square(torch.stack(list(vectors)).mean(dim=0))


def smoothness(
    gradient_at: Callable[[Tensor], Tensor], point: Tensor, steps: int, rng: np.random.Generator
) -> tuple[float, float]:
    """L near `point`, and by how much the last step changed it: power iteration on Hessian-vector products.

    H v is the difference quotient of two gradients. Unlike a second derivative (which sparse products do not have) it
    also sees the kinks of ReLU, as the L of ‖∇L(x) − ∇L(y)‖ ≤ L ‖x − y‖ does.
    """
    reach = _PROBE * max(1.0, point.norm().item())
    direction = torch.from_numpy(rng.standard_normal(len(point)))
    found = before = 0.0
    for _ in range(steps):
        direction = direction / direction.norm().clamp(min=1e-300)
        ahead, behind = gradient_at(point + reach * direction), gradient_at(point - reach * direction)
        direction = (ahead - behind) / (2 * reach)
        before, found = found, direction.norm().item()
    return found, abs(found - before)


def theorem1_bound(smoothness: float, num_machines: int, total_steps: int) -> float | None:
    """K ≤ √2 T^¼ / (8 L P^¾): the local steps that Theorem 1 allows."""
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
    """S = ((κ² + 2 σ_bias²) / (1 − L √(P/T)) − G_local) · K ρ^r / G_global, at least 0.

    As the appendix derives it: the main text prints G_local in the denominator. None where T ≤ L² P: the theorem does
    not speak of such short runs.
    """
    slack = 1 - smoothness * math.sqrt(num_machines / total_steps)
    if not slack > 0 or not g_global > 0:
        return None
    return max(0.0, ((kappa_sq + 2 * bias_sq) / slack - g_local) * local_steps / g_global)


def _square(vector: Tensor) -> float:
    return vector.square().sum().item()


def _standard_error(values: Tensor) -> float:
    return values.std().item() / math.sqrt(len(values))
