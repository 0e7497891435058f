"""Where models are evaluated: in the server's process, or beside it in one of their own (evaluation_process.py)."""

from collections import deque
from typing import Any, Protocol

from torch import Tensor

from llcg_dist.training.scorer import Scored, Scorer


class Evaluations(Protocol):
    """Models go in, and their scores come out in the same order."""

    beside: bool
    """Whether they are made while the rounds go on."""

    @property
    def busy(self) -> bool:
        """Whether there is a model whose scores were not taken yet."""

    @property
    def full(self) -> bool:
        """Whether scores have to be taken before another model can go in."""

    def submit(self, theta: Tensor) -> None: ...

    def take(self, wait: bool) -> Scored | None:
        """The scores of the first model that they were not taken of; None where they are not there and we do not
        `wait`."""

    def finished_model(self, theta: Tensor) -> dict[str, Tensor]:
        """When all scores are taken: the state_dict to save of `theta`, with the statistics that it is scored with."""

    def class_results(self, state_dict: dict[str, Tensor]) -> dict[str, Any]:
        """The scores of every class by a saved model."""

    @property
    def peak_rss_mb(self) -> float | None:
        """Of a process of its own."""


class EvaluationsHere:
    """Evaluates a model as soon as it goes in."""

    beside = busy = full = False
    peak_rss_mb = None

    def __init__(self, scorer: Scorer) -> None:
        self._scorer, self._scored = scorer, deque[Scored]()

    def submit(self, theta: Tensor) -> None:
        self._scored.append(self._scorer.score(theta))

    def take(self, wait: bool) -> Scored | None:
        return self._scored.popleft()

    def finished_model(self, theta: Tensor) -> dict[str, Tensor]:
        return self._scorer.evaluator.finished_model(theta)

    def class_results(self, state_dict: dict[str, Tensor]) -> dict[str, Any]:
        return self._scorer.evaluator.class_results(state_dict)
