"""Scores one model after the other, and keeps the state of each that is better than all before it."""

from dataclasses import dataclass

from torch import Tensor

from llcg_dist.stopwatch import Elapsed, now
from llcg_dist.training.evaluation import Evaluation, Evaluator


@dataclass(frozen=True)
class Scored:
    """What came out of one evaluation."""

    evaluation: Evaluation
    took: Elapsed
    best_state: dict[str, Tensor] | None
    """The state_dict with the running statistics that it was scored with, where no model before had such a score."""


class Scorer:
    """An evaluator that remembers the best validation score."""

    def __init__(self, evaluator: Evaluator, best: float | None) -> None:
        """`best`: the best validation score so far; None: there is none."""
        self.evaluator, self._best = evaluator, best

    def score(self, theta: Tensor) -> Scored:
        started = now()
        evaluation = self.evaluator.evaluate(theta)
        val = evaluation.val
        is_best = val is not None and (self._best is None or val > self._best)
        if is_best:
            self._best = val
        state = self.evaluator.state_dict() if is_best else None
        return Scored(evaluation, now() - started, state)
