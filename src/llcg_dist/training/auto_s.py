"""algorithm.S=auto: the server chooses the number of correction steps S of each round from gradients and updates.

The proof of Theorem 2 bounds the descent of each step. With η = 1/L, a step of all machines along the average v of
their update directions lowers the loss F of the full graph by at least

    η ⟨∇F, v⟩ − η/2 ‖v‖²  =  η/2 ‖v‖² · (2u − 1),        u = ⟨∇F, v⟩ / ‖v‖²,

and a correction step of the same length along ∇F lowers it by η/2 ‖v‖². So 1 − u is the share of a local step that does
not lower the loss, and a run whose server takes one correction step for every local step that is lost descends for any
u. The theorem sums over rounds: with K the mean number of local steps per round, every round takes S = K · (1 − u)
correction steps, rounded down. docs/concepts/methods.md has the reasoning and its limits.
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
from llcg_dist.models.samplers import sampler_for
from llcg_dist.sampling.minibatch import Batch, Sampler, load_batch
from llcg_dist.training.flat_vector import gradient_of, load_flat, statistics_mask
from llcg_dist.training.loss import loss

EMA_DECAY = 0.7
"""Weight of earlier rounds in the exponential moving average of the measured terms."""


@dataclass(frozen=True)
class Terms:
    """The measured terms of u. Squared norms are unbiased estimates without batch noise, so they may be negative."""

    g_global: float
    """‖∇F‖² on the full graph, at the averaged model."""
    g_local: float
    """The squared norm of the gradient on the graph without its cut edges: the machines' common direction."""
    kappa_a: float
    """κ_A²: the squared distance between these two gradients."""
    divergence: float
    """The share of ‖v‖² on which no two machines agree: what averaging leaves of κ_X² and of mini-batch noise."""

    @property
    def alignment(self) -> float:
        """The cosine, clamped to 0..1, between the gradients without cut edges and on the full graph.

        1 where the estimate of κ_A² is not positive: the two gradients then count as equal.
        """
        if self.kappa_a <= 0:
            return 1.0
        product = (self.g_global + self.g_local - self.kappa_a) / 2
        norms = math.sqrt(max(self.g_global, 0.0) * max(self.g_local, 0.0))
        return min(product / norms, 1.0) if product > 0 and norms > 0 else 0.0

    @property
    def useful(self) -> float:
        """u in 0..1: the alignment times the share of ‖v‖² on which the machines agree."""
        return self.alignment * min(max(1.0 - self.divergence, 0.0), 1.0)


class AutoS:
    """The rule that chooses S of each round from measured terms, smoothed over the rounds."""

    def __init__(self, max_steps: int, mean_steps: float) -> None:
        """`mean_steps`: K, the mean number of local steps per round over the run. `max_steps`: algorithm.S_max."""
        self._max_steps, self._mean_steps = max_steps, mean_steps
        self._terms: Terms | None = None

    def choose(self, terms: Terms) -> tuple[int, dict[str, Any]]:
        """S of this round, and the auto_s_* columns of its row, which explain the choice."""
        self._terms = terms if self._terms is None else _smoothed(self._terms, terms)
        useful = self._terms.useful
        demand = self._mean_steps * (1.0 - useful)
        minimum = 1.0 if useful < 1.0 else 0.0
        steps = math.floor(min(max(demand, minimum), self._max_steps))
        columns = {**asdict(terms), "alignment": self._terms.alignment, "useful": useful, "demand": demand}
        return steps, {f"auto_s_{name}": value for name, value in columns.items()}

    def state(self) -> dict[str, Any]:
        """The smoothed terms, for a checkpoint: all that the rule keeps from round to round."""
        return {"terms": None if self._terms is None else asdict(self._terms)}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restores the state of a checkpoint."""
        self._terms = None if state["terms"] is None else Terms(**state["terms"])


def _smoothed(average: Terms, terms: Terms) -> Terms:
    """The exponential moving average after one more round."""
    new = asdict(terms)
    return Terms(**{name: EMA_DECAY * old + (1 - EMA_DECAY) * new[name] for name, old in asdict(average).items()})


def divergence(start: Tensor, updates: Sequence[Tensor], weights: Sequence[float], learned: Tensor) -> float:
    """How far the machines' update directions diverge: 0 where all are equal, 1 where they are orthogonal, more where
    they oppose each other.

    `start` and each of `updates` are flat vectors [n]; `learned` [n] is False at BatchNorm's running statistics.
    ‖v‖² of the averaged direction is the sum of the products of all pairs of directions. The products of two different
    machines estimate the squared norm of the direction they have in common, to which independent noise and skew
    contribute nothing in expectation; the divergence is 1 minus the share that they have in ‖v‖².
    """
    share = torch.tensor(weights, dtype=torch.float64)
    share /= share.sum()
    directions = torch.stack([(update - start)[learned].double() for update in updates])
    squared_norm = (share @ directions).square().sum().item()
    own_products = (share.square() @ directions.square().sum(dim=1)).item()
    cross_weight = 1.0 - share.square().sum().item()
    if not squared_norm > 0 or not cross_weight > 0:
        return 0.0
    return 1.0 - (squared_norm - own_products) / cross_weight / squared_norm


def use_batch_statistics(model: nn.Module) -> None:
    """Sets BatchNorm to normalise with the batch's own statistics, as in a training step, and dropout off."""
    model.eval()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm1d):
            module.train()


class CutGradients:
    """Gradients of mini-batches on the full graph, and of the same mini-batches on the graph without its cut edges."""

    def __init__(
        self, model: nn.Module, view: View, sampler: Sampler, assignment: Array, degree: Array, device: str = "cpu"
    ) -> None:
        """`assignment` [N]: the part of each node; `degree` [N]: its number of neighbours in the same part."""
        self._model, self._view, self._sampler, self._device = model, view, sampler, device
        self._part, self._degree = torch.from_numpy(assignment), torch.from_numpy(degree)

    def products(self, nodes: Array, seed: int) -> tuple[float, float, float]:
        """(G_global, G_local, κ_A²) at the model's current parameters, estimated on the mini-batch `nodes`.

        Each is the inner product of the gradients of the two halves of the batch. The noise of the halves is
        independent, so it adds nothing in expectation; to the square of one gradient it would add its variance.
        """
        half = len(nodes) // 2
        (full, cut), (other_full, other_cut) = (
            self._full_and_cut(batch, seed) for batch in (nodes[:half], nodes[half:])
        )
        difference = torch.dot(full - cut, other_full - other_cut).item()
        return torch.dot(full, other_full).item(), torch.dot(cut, other_cut).item(), difference

    def _full_and_cut(self, nodes: Array, seed: int) -> tuple[Tensor, Tensor]:
        """The gradients of one mini-batch on the full graph and without the cut edges."""
        batch = load_batch(self._view, self._sampler, nodes, seed)
        input_nodes = batch.nodes.long()
        part, degree = self._part[input_nodes], self._degree[input_nodes]
        inside = [block.within_parts(part[: block.num_src], degree[: block.num_src]) for block in batch.blocks]
        use_batch_statistics(self._model)
        return self._gradient(batch), self._gradient(dataclasses.replace(batch, blocks=inside))

    def _gradient(self, batch: Batch) -> Tensor:
        batch = batch.to(self._device)
        logits = self._model(batch.features, batch.blocks)
        return gradient_of(loss(logits, batch.labels, self._view.task), self._model)


class StepChooser:
    """algorithm.S=auto at the server: draws one mini-batch per round, measures the terms of u and applies the rule."""

    def __init__(
        self,
        config: Config,
        graph: Graph,
        assignment: Array,
        mean_steps: float,
        device: str = "cpu",
    ) -> None:
        """`assignment` [N]: the part of each node. `mean_steps`: the mean number of local steps per round."""
        view = GraphView(graph)
        self._config, self._nodes = config, view.train_nodes
        self._model = build_model(config.model, graph.num_features, graph.num_classes).to(device)
        self._learned = ~statistics_mask(self._model)
        sampler = sampler_for(self._model, view.topology, config.sampling.server_fanout)
        degree = degrees_within_parts(graph, assignment)
        self._gradients = CutGradients(self._model, view, sampler, assignment, degree, device)
        self._rule = AutoS(config.algorithm.S_max, mean_steps)
        self._divergence = 0.0

    def note_updates(self, start: Tensor, updates: Sequence[Tensor], weights: Sequence[float]) -> None:
        """Measures the divergence of a round's updates [n] from the model `start` [n], for the next choice."""
        self._divergence = divergence(start, updates, weights, self._learned)

    def choose(self, theta: Tensor, round_: int) -> tuple[int, dict[str, Any]]:
        """S of the round, and the columns that explain it; `theta` [n] is the model that the correction starts from."""
        load_flat(self._model, theta)
        rng = seeding.diagnostics_generator(self._config.seed, seeding.SERVER_STREAM, round_)
        size = min(self._config.train.server_batch_size, len(self._nodes))
        batch = rng.choice(self._nodes, size, replace=False)
        terms = Terms(*self._gradients.products(batch, int(rng.integers(2**31))), self._divergence)
        return self._rule.choose(terms)

    def state(self) -> dict[str, Any]:
        """What a checkpoint needs to resume the choice."""
        return self._rule.state() | {"divergence": self._divergence}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restores the state of a checkpoint; one without divergence is of a version that only measured it anew."""
        self._rule.load_state(state)
        self._divergence = state.get("divergence", 0.0)
