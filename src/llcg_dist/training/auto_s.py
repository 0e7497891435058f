"""algorithm.S=auto: how many correction steps a round takes, from what the server sees of it anyway.

The proof of Theorem 2 takes the steps of a round one by one. With η = 1/L, a step of all machines along the average v
of their directions lowers the loss F of the whole graph by at least

    η ⟨∇F, v⟩ − η/2 ‖v‖²  =  η/2 ‖v‖² · (2u − 1),        u = ⟨∇F, v⟩ / ‖v‖²,

and a correction step along ∇F, as long as that one, by η/2 ‖v‖². So 1 − u is the share of a local step that does not
lead down, and a run in which the server takes a step for every local step that is lost descends whatever u is. The
theorem sums over rounds: K is their mean number of local steps, and every round takes S = K · (1 − u), in whole steps.
docs/algorithms.md has the reasoning and its limits.
"""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from llcg_dist import seeding
from llcg_dist.config.schema import Config
from llcg_dist.data.cut import degrees_within_parts
from llcg_dist.data.graph import Graph
from llcg_dist.data.rows import Array
from llcg_dist.data.views import GraphView, View
from llcg_dist.models import build_model
from llcg_dist.sampling.minibatch import Batch, MakeSampler, Sampler, fanouts_per_layer, load_batch
from llcg_dist.training.flat_vector import gradient_of, load_flat, statistics_mask
from llcg_dist.training.loss import loss

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
    """Gradients of mini-batches on the full graph, and of the same batches on the graph without its cut edges."""

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
        (full, cut), (other_full, other_cut) = (self._both(batch, seed) for batch in (nodes[:half], nodes[half:]))
        apart = torch.dot(full - cut, other_full - other_cut).item()
        return torch.dot(full, other_full).item(), torch.dot(cut, other_cut).item(), apart

    def _both(self, nodes: Array, seed: int) -> tuple[Tensor, Tensor]:
        batch = load_batch(self._view, self._sampler, nodes, seed)
        read = batch.nodes.long()
        part, degree = self._part[read], self._degree[read]
        inside = [block.within_parts(part[: block.num_src], degree[: block.num_src]) for block in batch.blocks]
        self._normalise_batches()
        return self._gradient(batch), self._gradient(dataclasses.replace(batch, blocks=inside))

    def _gradient(self, batch: Batch) -> Tensor:
        batch = batch.to(self._device)
        logits = self._model(batch.features, batch.blocks)
        return gradient_of(loss(logits, batch.labels, self._view.task), self._model)

    def _normalise_batches(self) -> None:
        """BatchNorm as in a training step, whose statistics are the batch's own; no dropout."""
        self._model.eval()
        for module in self._model.modules():
            if isinstance(module, nn.BatchNorm1d):
                module.train()


class StepChooser:
    """algorithm.S=auto at the server: draws a batch of the round, measures the terms of the rule, and applies it."""

    def __init__(
        self,
        config: Config,
        graph: Graph,
        assignment: Array,
        mean_steps: float,
        make_sampler: MakeSampler,
        device: str = "cpu",
    ) -> None:
        view = GraphView(graph)
        self._config, self._nodes = config, view.train_nodes
        self._model = build_model(config.model, graph.num_features, graph.num_classes).to(device)
        self._learned = ~statistics_mask(self._model)
        fanouts = fanouts_per_layer(config.sampling.server_fanout, self._model.depth)
        sampler = make_sampler(view.topology, fanouts, "neighbor")
        degree = degrees_within_parts(graph, assignment)
        self._gradients = CutGradients(self._model, view, sampler, assignment, degree, device)
        self._rule = AutoS(config.algorithm.S_max, mean_steps)
        self._divergence = 0.0

    def note_updates(self, start: Tensor, updates: Sequence[Tensor], weights: Sequence[float]) -> None:
        self._divergence = divergence(start, updates, weights, self._learned)

    def choose(self, theta: Tensor, round_: int) -> tuple[int, dict[str, Any]]:
        """S, and why, for the model that the machines' average led to."""
        load_flat(self._model, theta)
        rng = seeding.diagnostics_generator(self._config.seed, seeding.SERVER_STREAM, round_)
        size = min(self._config.train.server_batch_size, len(self._nodes))
        batch = rng.choice(self._nodes, size, replace=False)
        terms = Terms(*self._gradients.products(batch, int(rng.integers(2**31))), self._divergence)
        return self._rule.choose(terms)

    def state(self) -> dict[str, Any]:
        return self._rule.state()

    def load_state(self, state: dict[str, Any]) -> None:
        self._rule.load_state(state)
