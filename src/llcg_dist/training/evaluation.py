"""Scores a model on the whole graph, all neighbours, eval mode; on the way, BatchNorm statistics can be recomputed."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from llcg_dist.config.schema import BEST
from llcg_dist.data.graph import TEST, TRAIN, UNUSED, VAL, Graph
from llcg_dist.models.stages import GraphModel
from llcg_dist.training.flat_vector import load_flat
from llcg_dist.training.layerwise import WholeGraphForward
from llcg_dist.training.loss import loss
from llcg_dist.training.metrics import score

WORTH_WAITING = 0.1
"""The share of a run that machines may spend waiting for evaluations before the user hears of it."""


@dataclass(frozen=True)
class Scores:
    """Validation and test score as fractions in 0..1, and the loss over the training nodes."""

    val: float | None
    test: float | None
    train_loss: float


@dataclass(frozen=True)
class Evaluation(Scores):
    kind: str
    """Of statistics: the scores above are with these, and the model has them."""
    of_kind: dict[str, Scores]
    """By every kind that was scored."""


class Evaluator:
    """Evaluates parameters on one graph, `chunk` nodes at a time; hidden states go to `scratch` where that is given.

    Statistics never enter training, so one training can be evaluated with both `kinds`.
    """

    def __init__(
        self,
        graph: Graph,
        model: GraphModel,
        batchnorm_stats: str,
        chunk: int,
        scratch: str | None = None,
        kinds: Sequence[str] | None = None,
    ) -> None:
        """`kinds` of statistics to score with: see config/facts.py; by default `batchnorm_stats` alone."""
        self._graph, self._model, self._batchnorm_stats = graph, model, batchnorm_stats
        self._forwards = {
            kind: WholeGraphForward(graph, model, chunk, scratch, graph.split != UNUSED, kind == "recalibrate")
            for kind in kinds or [batchnorm_stats]
        }
        self._labels = torch.from_numpy(graph.labels)
        self._evaluated: Tensor | None = None
        self._nodes = {split: torch.from_numpy(graph.nodes_in(split)) for split in (TRAIN, VAL, TEST)}

    def evaluate(self, theta: Tensor) -> Evaluation:
        found, statistics = {}, {}
        for kind, forward in self._forwards.items():
            load_flat(self._model, theta)
            found[kind] = self._scores(forward.logits())
            statistics[kind] = self.state_dict()
        kind = _better(found) if self._batchnorm_stats == BEST else self._batchnorm_stats
        self._model.load_state_dict(statistics[kind])
        self._evaluated = theta
        return Evaluation(**vars(found[kind]), kind=kind, of_kind=found)

    def _scores(self, logits: Tensor) -> Scores:
        def rated(split: int) -> float | None:
            nodes = self._nodes[split]
            return score(logits[nodes], self._labels[nodes], self._graph.metric)

        train = self._nodes[TRAIN]
        return Scores(rated(VAL), rated(TEST), loss(logits[train], self._labels[train], self._graph.task).item())

    def finished_model(self, theta: Tensor) -> dict[str, Tensor]:
        """The state_dict that a user gets for `theta`: its statistics are those it is evaluated with."""
        if self._evaluated is not theta:
            self.evaluate(theta)
        return self.state_dict()

    def state_dict(self) -> dict[str, Tensor]:
        """Of the model evaluated last."""
        return {name: tensor.clone() for name, tensor in self._model.state_dict().items()}


def _better(found: dict[str, Scores]) -> str:
    """The kind with the higher validation score; of equals, and where there is none, the last."""
    return max(reversed(found), key=lambda kind: found[kind].val or 0.0)


def affordable_every(seconds_evaluate: float, seconds_local: float, every: int) -> int | None:
    """The evaluate.every at which machines wait for evaluations a tenth of the time or less; None where they do so now.

    They wait for what an evaluation takes longer than the local steps that it runs beside.
    """
    waited = max(0.0, seconds_evaluate - seconds_local)
    affordable = math.ceil(waited / (WORTH_WAITING * max(seconds_local, 1e-6)))
    return affordable if affordable > every else None
