"""Evaluates a model on the full graph with all neighbours, in eval mode.

BatchNorm's running statistics can be recalibrated on the way.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.modules.batchnorm import _BatchNorm

from llcg_dist.config.algorithm import BatchNormStats
from llcg_dist.config.schema import Config
from llcg_dist.data.graph import UNUSED, Graph
from llcg_dist.data.rows import Array
from llcg_dist.models.base import Model
from llcg_dist.models.registry import structure
from llcg_dist.training.class_scores import class_results
from llcg_dist.training.flat_vector import load_flat
from llcg_dist.training.full_forward import FullForward, full_forward
from llcg_dist.training.hidden_states import IN_MEMORY, HiddenStates
from llcg_dist.training.loss import loss
from llcg_dist.training.metrics import score
from llcg_dist.training.node_sample import ALL_NODES, NodeSample, standard_error
from llcg_dist.training.threads import using_threads

_MAX_WAITING_SHARE = 0.1
"""The share of a run that machines may wait for evaluations before the user is warned."""


@dataclass(frozen=True)
class Scores:
    """Validation and test score as fractions in 0..1 (None: undefined), and the mean loss over the training nodes."""

    val: float | None
    test: float | None
    train_loss: float
    val_error: float | None = None
    """Standard error of a validation score that is estimated from a sample of the nodes."""
    test_error: float | None = None


@dataclass(frozen=True, kw_only=True)
class Evaluation(Scores):
    """The scores with the running statistics that were chosen, and those with every kind that was scored."""

    kind: str
    """The kind of BatchNorm running statistics (average, recalibrate) that the scores above are with."""
    of_kind: dict[str, Scores]
    """The scores with each kind of running statistics."""


@dataclass(frozen=True)
class EvaluationSettings:
    """How models are evaluated."""

    batchnorm_stats: str
    chunk: int
    """Nodes computed at a time."""
    states: HiddenStates = IN_MEMORY
    kinds: Sequence[str] | None = None
    """The kinds of running statistics to score with (scored_statistics); None: only `batchnorm_stats`."""
    sample: NodeSample = ALL_NODES
    threads: int | None = None
    """CPU threads of an evaluation; None: those that torch has."""
    device: str = "cpu"

    @classmethod
    def of(cls, config: Config, threads: int | None = None, device: str = "cpu") -> "EvaluationSettings":
        evaluate, kind = config.evaluate, config.algorithm.batchnorm_stats
        sample = NodeSample(evaluate.sample, config.seed)
        states = HiddenStates.of(evaluate)
        return cls(kind, evaluate.chunk, states, scored_statistics(config), sample, threads, device)


class Evaluator:
    """Evaluates flat parameter vectors on one graph.

    Running statistics never enter training, so the same training can be evaluated with both kinds of them.
    """

    def __init__(self, graph: Graph, model: Model, settings: EvaluationSettings) -> None:
        self._graph, self._model, self._settings = graph, model.to(settings.device), settings
        self._nodes = settings.sample.of_splits(graph)
        scored = np.zeros(graph.num_nodes, bool)
        for nodes in self._nodes.values():
            scored[nodes.numpy()] = True
        self._forwards = {
            kind: self._forward(scored, kind == BatchNormStats.recalibrate)
            for kind in settings.kinds or [settings.batchnorm_stats]
        }
        self._has_batchnorm = any(isinstance(module, _BatchNorm) for module in model.modules())
        self._labels = torch.from_numpy(graph.labels)
        self._evaluated: Tensor | None = None

    def _forward(self, nodes: Array, recalibrate: bool = False) -> FullForward:
        settings = self._settings
        return full_forward(self._graph, self._model, settings.chunk, settings.states, nodes, recalibrate)

    def evaluate(self, theta: Tensor) -> Evaluation:
        """Scores the model `theta` with every kind of statistics; the model keeps the statistics of the chosen kind."""
        scores, state_dicts = dict[str, Scores](), dict[str, dict[str, Tensor]]()
        for kind, forward in self._forwards.items():
            if scores and not self._has_batchnorm:  # all kinds are the same
                scores[kind], state_dicts[kind] = next(iter(scores.values())), next(iter(state_dicts.values()))
                continue
            load_flat(self._model, theta)
            with using_threads(self._settings.threads):
                logits = forward.logits().cpu()
            scores[kind] = self._scores(logits)
            state_dicts[kind] = self._state()
        chosen = self._settings.batchnorm_stats
        kind = _best_kind(scores) if chosen == BatchNormStats.best else chosen
        self._model.load_state_dict(state_dicts[kind])
        self._evaluated = theta
        return Evaluation(**vars(scores[kind]), kind=kind, of_kind=scores)

    def _scores(self, logits: Tensor) -> Scores:
        metric, (train, *scored) = self._graph.metric, self._nodes.values()
        train_loss = loss(logits[train], self._labels[train], self._graph.task).item()
        val, test = (score(logits, self._labels[nodes], metric, nodes) for nodes in scored)
        scores, share = Scores(val, test, train_loss), self._settings.sample.share
        if share == 1:
            return scores
        val_error, test_error = (standard_error(logits[nodes], self._labels[nodes], metric, share) for nodes in scored)
        return replace(scores, val_error=val_error, test_error=test_error)

    def finished_model(self, theta: Tensor) -> dict[str, Tensor]:
        """The state_dict that is saved for `theta`, with the running statistics that it is evaluated with."""
        if self._evaluated is not theta:
            self.evaluate(theta)
        return self.state_dict()

    def class_results(self, state_dict: dict[str, Tensor]) -> dict[str, Any]:
        """The scores of every class on all nodes, by a saved model with the running statistics that it has."""
        self._evaluated = None
        self._model.load_state_dict(state_dict)
        whole = self._settings.sample.share == 1
        forward = next(iter(self._forwards.values())) if whole else self._forward(self._graph.split != UNUSED)
        with using_threads(self._settings.threads):
            logits = forward.logits(recalibrate=False).cpu()
        return class_results(logits, self._graph)

    def state_dict(self) -> dict[str, Tensor]:
        """A copy of the state_dict of the model that was evaluated last, on the CPU."""
        return {name: tensor.cpu() for name, tensor in self._state().items()}

    def _state(self) -> dict[str, Tensor]:
        """A copy of the state_dict, on the model's device."""
        return {name: tensor.clone() for name, tensor in self._model.state_dict().items()}


def scored_statistics(config: Config) -> tuple[BatchNormStats, ...]:
    """The kinds of BatchNorm running statistics (average, recalibrate) that the server evaluates the model with."""
    kind, best = config.algorithm.batchnorm_stats, BatchNormStats.best
    if structure(config.model).may_have_batchnorm and (config.evaluate.both_statistics or kind == best):
        return BatchNormStats.average, BatchNormStats.recalibrate
    return (BatchNormStats.recalibrate if kind == best else kind,)


def _best_kind(scores: dict[str, Scores]) -> str:
    """The kind of statistics with the highest validation score; the last one of equals and where there is no score."""
    return max(reversed(scores), key=lambda kind: scores[kind].val or 0.0)


def affordable_every(seconds_evaluate: float, seconds_local: float, every: int) -> int | None:
    """The smallest evaluate.every with which machines wait for evaluations at most a tenth of the time.

    Machines wait for the time that an evaluation takes longer than the local steps that run beside it. None where the
    present `every` is large enough.
    """
    waited = max(0.0, seconds_evaluate - seconds_local)
    affordable = math.ceil(waited / (_MAX_WAITING_SHARE * max(seconds_local, 1e-6)))
    return affordable if affordable > every else None
