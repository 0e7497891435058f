"""Scores a model on the whole graph, all neighbours, eval mode; on the way, BatchNorm statistics can be recomputed."""

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from llcg_dist.core.layerwise import WholeGraphForward
from llcg_dist.core.objective import loss, score
from llcg_dist.core.parameters import load_flat
from llcg_dist.data.graph import TEST, TRAIN, UNUSED, VAL, Graph
from llcg_dist.models.stages import GraphModel

WORTH_WAITING = 0.1
"""The share of a run that machines may spend waiting for evaluations before the user hears of it."""
OTHER = {"average": "recalibrate", "recalibrate": "average"}
"""For each kind of BatchNorm statistics the other one."""


@dataclass(frozen=True)
class Scores:
    """Validation and test score as fractions in 0..1, and the loss over the training nodes."""

    val: float | None
    test: float | None
    train_loss: float
    other: "Scores | None" = None
    """Of the same weights with the other kind of BatchNorm statistics, where that was asked for."""


class Evaluator:
    """Judges parameters on one graph, `chunk` nodes at a time; hidden states go to `scratch` where that is given.

    Statistics never enter training, so one training can be judged with either kind: `both_statistics` does.
    """

    def __init__(
        self,
        graph: Graph,
        model: GraphModel,
        batchnorm_stats: str,
        chunk: int,
        scratch: str | None = None,
        both_statistics: bool = False,
    ) -> None:
        self._graph, self._model = graph, model

        def forward_with(kind: str) -> WholeGraphForward:
            return WholeGraphForward(graph, model, chunk, scratch, graph.split != UNUSED, kind == "recalibrate")

        self._forward_all = forward_with(batchnorm_stats)
        self._forward_other = forward_with(OTHER[batchnorm_stats]) if both_statistics else None
        self._labels = torch.from_numpy(graph.labels)
        self._judged: Tensor | None = None
        self._nodes = {split: torch.from_numpy(graph.nodes_in(split)) for split in (TRAIN, VAL, TEST)}

    def judge(self, theta: Tensor) -> Scores:
        other = None
        if self._forward_other is not None:  # first: the model keeps the statistics that it is judged by
            load_flat(self._model, theta)
            other = self._scores(self._forward_other.logits())
        return replace(self._scores(self._forward(theta)), other=other)

    def _scores(self, logits: Tensor) -> Scores:
        def rated(split: int) -> float | None:
            nodes = self._nodes[split]
            return score(logits[nodes], self._labels[nodes], self._graph.metric)

        train = self._nodes[TRAIN]
        return Scores(rated(VAL), rated(TEST), loss(logits[train], self._labels[train], self._graph.task).item())

    def finished_model(self, theta: Tensor) -> dict[str, Tensor]:
        """The state_dict that a user gets for `theta`: its statistics are those it is judged with."""
        if self._judged is not theta:
            self._forward(theta)
        return self.state_dict()

    def state_dict(self) -> dict[str, Tensor]:
        """Of the model judged last."""
        return {name: tensor.clone() for name, tensor in self._model.state_dict().items()}

    def _forward(self, theta: Tensor) -> Tensor:
        load_flat(self._model, theta)
        self._judged = theta
        return self._forward_all.logits()


def affordable_every(seconds_evaluate: float, seconds_local: float, every: int) -> int | None:
    """The evaluate.every at which machines wait for evaluations a tenth of the time or less; None where they do so now.

    They wait for what an evaluation takes longer than the local steps that it runs beside.
    """
    waited = max(0.0, seconds_evaluate - seconds_local)
    affordable = math.ceil(waited / (WORTH_WAITING * max(seconds_local, 1e-6)))
    return affordable if affordable > every else None
