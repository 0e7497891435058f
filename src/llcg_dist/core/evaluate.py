"""Scores a model on the whole graph, all neighbours, eval mode; on the way, BatchNorm statistics can be recomputed."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from llcg_dist.core.objective import loss, score
from llcg_dist.core.parameters import load_flat
from llcg_dist.data.graph import TEST, TRAIN, VAL, Graph


@dataclass(frozen=True)
class Scores:
    """Validation and test score as fractions in 0..1, and the loss over the training nodes."""

    val: float | None
    test: float | None
    train_loss: float


class Evaluator:
    """Judges parameters on one graph. `blocks` are the whole graph, once per message-passing layer."""

    def __init__(self, graph: Graph, model: nn.Module, blocks: list[Any], batchnorm_stats: str) -> None:
        self._graph, self._model, self._blocks = graph, model, blocks
        self._recalibrates = batchnorm_stats == "recalibrate"
        self._features, self._labels = torch.from_numpy(graph.features), torch.from_numpy(graph.labels)
        self._judged: Tensor | None = None
        self._nodes = {split: torch.from_numpy(graph.nodes_in(split)) for split in (TRAIN, VAL, TEST)}

    def judge(self, theta: Tensor) -> Scores:
        logits = self._forward(theta)

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

    @torch.no_grad()
    def _forward(self, theta: Tensor) -> Tensor:
        load_flat(self._model, theta)
        self._judged = theta
        self._model.eval()
        if not self._recalibrates:
            return self._model(self._features, self._blocks)
        with recalibrated(self._model):
            return self._model(self._features, self._blocks)


@contextmanager
def recalibrated(model: nn.Module) -> Iterator[None]:
    """While open, a BatchNorm layer in eval mode first takes mean and variance of the input it is given.

    One pass over the whole graph thus sets the statistics of every layer, in order, and computes the logits with them.
    Running statistics never enter training, so nothing that is learned changes.
    """

    def take_statistics(layer: nn.BatchNorm1d, inputs: tuple[Tensor]) -> None:
        variance, mean = torch.var_mean(inputs[0], dim=0)
        layer.get_buffer("running_mean").copy_(mean)
        layer.get_buffer("running_var").copy_(variance)

    layers = [layer for layer in model.modules() if isinstance(layer, nn.BatchNorm1d)]
    hooks = [layer.register_forward_pre_hook(take_statistics) for layer in layers]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
