"""S=auto at the server: draws the round's batch and measures what core/auto_s.py decides by."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from llcg_dist import seeding
from llcg_dist.config.schema import Config
from llcg_dist.core.auto_s import AutoS, CutGradients, Terms, divergence
from llcg_dist.core.parameters import load_flat, statistics_mask
from llcg_dist.data.cut import degrees_within_parts
from llcg_dist.data.graph import Graph
from llcg_dist.data.rows import Array
from llcg_dist.data.views import GraphView
from llcg_dist.models import build_model
from llcg_dist.sampling import NeighborSampler, fanouts_per_layer


class StepChooser:
    def __init__(self, config: Config, graph: Graph, assignment: Array, mean_steps: float, device: str = "cpu") -> None:
        view = GraphView(graph)
        self._config, self._nodes = config, view.train_nodes
        self._model = build_model(config.model, graph.num_features, graph.num_classes).to(device)
        self._learned = ~statistics_mask(self._model)
        sampler = NeighborSampler(view.topology, fanouts_per_layer(config.sampling.server_fanout, self._model.depth))
        degree = degrees_within_parts(graph, assignment)
        self._gradients = CutGradients(self._model, view, sampler, assignment, degree, device)
        self._rule = AutoS(config.algorithm.S_max, mean_steps)
        self._divergence = 0.0

    def note_updates(self, start: Tensor, updates: Sequence[Tensor], weights: Sequence[float]) -> None:
        self._divergence = divergence(start, updates, weights, self._learned)

    def choose(self, theta: Tensor, round_: int) -> tuple[int, dict[str, Any]]:
        """S, and why, for the model that the machines' average led to."""
        load_flat(self._model, theta)
        rng = seeding.measuring(self._config.seed, seeding.SERVER, round_)
        size = min(self._config.train.server_batch_size, len(self._nodes))
        batch = rng.choice(self._nodes, size, replace=False)
        terms = Terms(*self._gradients.products(batch, int(rng.integers(2**31))), self._divergence)
        return self._rule.choose(terms)

    def state(self) -> dict[str, Any]:
        return self._rule.state()

    def load_state(self, state: dict[str, Any]) -> None:
        self._rule.load_state(state)
