"""algorithm.S=auto: how many correction steps a round takes, from what the server sees of it anyway.

Theorem 2 asks that S steps along the whole graph's gradient make up for the bias of K·rho^r local steps:

    S · G_global  ≥  K·rho^r · (κ_A² + κ_X² + 2 σ_bias² − G_local)        (its proof, with 1 − ηL taken as 1)

The right number of steps is bounded from above by what the server can measure of this at the averaged model, and what
it takes below that bound is what still pays: docs/algorithms.md has the reasoning.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from llcg_dist.core.batches import Sampler
from llcg_dist.core.objective import loss
from llcg_dist.core.parameters import gradient_of
from llcg_dist.data.rows import Array
from llcg_dist.data.stored_rows import Rows
from llcg_dist.data.views import View

WORTH = 0.02
"""The share of the loss that a correction step has to take off to be worth taking."""
FASTEST = 1.25
"""How far the number of steps may grow or fall from one round to the next."""
MEMORY = 0.5
"""Weight of the past in what is smoothed."""


@dataclass(frozen=True)
class Terms:
    """Of Theorem 2, at the averaged model; estimates without the noise of their batches, so they may fall below 0."""

    g_global: float
    """‖∇L‖² on the whole graph."""
    g_local: float
    """The same on the graph without its cut edges: the mean of what the machines descend along."""
    kappa_a: float
    """‖their difference‖²."""
    divergence: float
    """(1/P) Σ ‖θ_p − θ̄‖² over ‖θ̄ − θ(r−1)‖²: κ_X² in units of G_local, whatever the optimiser; sampling noise, too."""

    def bound(self, local_steps: int) -> float:
        """Theorem 2's S, or infinity where the gradient is lost in noise."""
        demand = self.kappa_a + self.divergence * max(0.0, self.g_local)
        return local_steps * max(0.0, demand) / self.g_global if self.g_global > 0 else math.inf


class AutoS:
    """Chooses S round by round. All it remembers is `state()`."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._wanted = 1.0
        self._payoff: float | None = None
        self._terms: Terms | None = None

    def choose(self, terms: Terms, local_steps: int) -> tuple[int, dict[str, Any]]:
        """S of this round, and why."""
        self._terms = terms if self._terms is None else _smoothed(self._terms, terms)
        bound = self._terms.bound(local_steps)
        steps = math.floor(min(self._wanted, bound, self._most) + 0.5)
        why = {f"auto_s_{name}": value for name, value in asdict(terms).items()}
        limits = {"auto_s_bound": min(bound, 1e9), "auto_s_wanted": self._wanted, "auto_s_payoff": self._payoff}
        return steps, why | limits

    def learn(self, before: float, after: float, steps: int) -> None:
        """The loss of one seeded batch before and after the correction says what a step was worth."""
        if steps == 0:
            return
        payoff = (before - after) / (steps * max(before, 1e-12))
        self._payoff = payoff if self._payoff is None else MEMORY * self._payoff + (1 - MEMORY) * payoff
        change = min(max(self._payoff / WORTH, 1 / FASTEST), FASTEST)
        held_back = steps + 0.5 < self._wanted  # by the bound: then what was wanted falls towards it
        base = max(steps, self._wanted / FASTEST) if held_back else self._wanted
        self._wanted = min(max(1.0, base * change), float(self._most))

    def state(self) -> dict[str, Any]:
        terms = None if self._terms is None else asdict(self._terms)
        return {"wanted": self._wanted, "payoff": self._payoff, "terms": terms}

    def load_state(self, state: dict[str, Any]) -> None:
        self._wanted, self._payoff = float(state["wanted"]), state["payoff"]
        self._terms = None if state["terms"] is None else Terms(**state["terms"])


def _smoothed(old: Terms, new: Terms) -> Terms:
    fresh = asdict(new)
    return Terms(**{name: MEMORY * value + (1 - MEMORY) * fresh[name] for name, value in asdict(old).items()})


def divergence(start: Tensor, updates: Sequence[Tensor], learned: Tensor) -> float:
    """Of the machines' ways from `start`; `learned` masks the parameters among BatchNorm's statistics."""
    ways = torch.stack([(update - start)[learned].double() for update in updates])
    mean = ways.mean(dim=0)
    common = mean.square().sum().item()
    return (ways - mean).square().sum().item() / len(ways) / common if common > 0 else 0.0


class CutGradients:
    """Gradients of mini-batches on the whole graph, and of the same batches on the graph without its cut edges."""

    def __init__(
        self, model: nn.Module, view: View, sampler: Sampler, assignment: Array, degree: Array, device: str = "cpu"
    ) -> None:
        """`degree` [N]: neighbours in a node's own part."""
        self._model, self._view, self._sampler, self._device = model, view, sampler, device
        self._part, self._degree = torch.from_numpy(assignment), torch.from_numpy(degree)

    def products(self, nodes: Array, seed: int) -> tuple[float, float, float]:
        """(G_global, G_local, κ_A²) for the model as it stands.

        Each is the product of the gradients of two halves of the batch: their noise is independent, so it adds nothing
        on average, as it would to the square of one gradient.
        """
        half = len(nodes) // 2
        (whole, cut), (other_whole, other_cut) = (self._both(batch, seed) for batch in (nodes[:half], nodes[half:]))
        apart = torch.dot(whole - cut, other_whole - other_cut).item()
        return torch.dot(whole, other_whole).item(), torch.dot(cut, other_cut).item(), apart

    @torch.no_grad()
    def loss(self, nodes: Array, seed: int) -> float:
        """Of one batch on the whole graph."""
        self._normalise_batches()
        inputs, labels, blocks, _ = self._sampled(nodes, seed)
        return loss(self._model(inputs, blocks), labels, self._view.task).item()

    def _both(self, nodes: Array, seed: int) -> tuple[Tensor, Tensor]:
        self._normalise_batches()
        inputs, labels, whole, inside = self._sampled(nodes, seed)
        return self._gradient(inputs, labels, whole), self._gradient(inputs, labels, inside)

    def _gradient(self, inputs: Rows, labels: Tensor, blocks: list[Any]) -> Tensor:
        return gradient_of(loss(self._model(inputs, blocks), labels, self._view.task), self._model)

    def _sampled(self, nodes: Array, seed: int) -> tuple[Rows, Tensor, list[Any], list[Any]]:
        batch = self._sampler.sample(nodes, seed=seed)
        inputs = self._view.features(batch.inputs).to(self._device).float()
        labels = self._view.labels(batch.outputs).to(self._device)
        read = batch.inputs.long()
        part, degree = self._part[read], self._degree[read]
        inside = [block.within_parts(part[: block.num_src], degree[: block.num_src]) for block in batch.blocks]
        whole = [block.to(self._device) for block in batch.blocks]
        return inputs, labels, whole, [block.to(self._device) for block in inside]

    def _normalise_batches(self) -> None:
        """BatchNorm as in a training step, whose statistics are the batch's own; no dropout."""
        self._model.eval()
        for module in self._model.modules():
            if isinstance(module, nn.BatchNorm1d):
                module.train()
