"""algorithm.S=auto: how many correction steps a round takes, from what the server sees of it anyway.

The proof of Theorem 2 takes the steps of a round one by one. With η = 1/L, a step of all machines along the average v
of their directions lowers the loss F of the whole graph by at least

    η ⟨∇F, v⟩ − η/2 ‖v‖²  =  η/2 ‖v‖² · (2u − 1),        u = ⟨∇F, v⟩ / ‖v‖²,

and a correction step along ∇F, as long as that one, by η/2 ‖v‖². So 1 − u is the share of a local step that does not
lead down, and a run in which the server takes a step for every local step that is lost descends whatever u is. The
theorem sums over rounds: K is their mean number of local steps, and every round takes S = K · (1 − u), in whole steps.
docs/algorithms.md has the reasoning and its limits.
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
from llcg_dist.data.feature_rows import Rows
from llcg_dist.data.rows import Array
from llcg_dist.data.views import View

MEMORY = 0.7
"""Weight of the past in what is smoothed."""


@dataclass(frozen=True)
class Terms:
    """What u is made of. Squared norms are without the noise of their batches, so they may fall below 0."""

    g_global: float
    """‖∇F‖², at the averaged model."""
    g_local: float
    """The same on the graph without its cut edges: where the machines go as far as they agree."""
    kappa_a: float
    """‖their difference‖²."""
    divergence: float
    """The share of ‖v‖² that no two machines agree on: what averaging left of κ_X² and of their batches' noise."""

    @property
    def alignment(self) -> float:
        """In 0..1: the cosine between where the machines go as far as they agree and where the whole graph leads."""
        if self.kappa_a <= 0:
            return 1.0
        product = (self.g_global + self.g_local - self.kappa_a) / 2
        lengths = math.sqrt(max(self.g_global, 0.0) * max(self.g_local, 0.0))
        return min(product / lengths, 1.0) if product > 0 and lengths > 0 else 0.0

    @property
    def useful(self) -> float:
        """u"""
        return self.alignment * min(max(1.0 - self.divergence, 0.0), 1.0)


class AutoS:
    """Chooses S round by round. All it remembers is `state()`."""

    def __init__(self, most: int, mean_steps: float) -> None:
        """`mean_steps`: K, the local steps of a round on average over the run."""
        self._most, self._mean_steps = most, mean_steps
        self._terms: Terms | None = None

    def choose(self, terms: Terms) -> tuple[int, dict[str, Any]]:
        """S of this round, and why."""
        self._terms = terms if self._terms is None else _smoothed(self._terms, terms)
        useful = self._terms.useful
        demand = self._mean_steps * (1.0 - useful)
        least = 1.0 if useful < 1.0 else 0.0
        steps = math.floor(min(max(demand, least), self._most))
        why = {**asdict(terms), "alignment": self._terms.alignment, "useful": useful, "demand": demand}
        return steps, {f"auto_s_{name}": value for name, value in why.items()}

    def state(self) -> dict[str, Any]:
        return {"terms": None if self._terms is None else asdict(self._terms)}

    def load_state(self, state: dict[str, Any]) -> None:
        self._terms = None if state["terms"] is None else Terms(**state["terms"])


def _smoothed(old: Terms, new: Terms) -> Terms:
    fresh = asdict(new)
    return Terms(**{name: MEMORY * value + (1 - MEMORY) * fresh[name] for name, value in asdict(old).items()})


def divergence(start: Tensor, updates: Sequence[Tensor], weights: Sequence[float], learned: Tensor) -> float:
    """Of the machines' ways from `start`; `learned` masks the parameters among BatchNorm's statistics.

    ‖v‖² is the sum over all pairs of ways of their products. Those of two different machines estimate the common way,
    to which noise and skew add nothing on average; 1 minus their share is 0 where all go the same way, 1 where their
    ways have nothing in common, and more where they go apart.
    """
    share = torch.tensor(weights, dtype=torch.float64)
    share /= share.sum()
    ways = torch.stack([(update - start)[learned].double() for update in updates])
    length = (share @ ways).square().sum().item()
    own = (share.square() @ ways.square().sum(dim=1)).item()
    others = 1.0 - share.square().sum().item()
    return 1.0 - (length - own) / others / length if length > 0 and others > 0 else 0.0


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
