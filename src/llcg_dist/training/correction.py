"""Lines 12-17 of Algorithm 2: the server's correction steps on the full graph, after the local steps or beside them."""

from typing import Any

import torch
from torch import Tensor

from llcg_dist.config.algorithm import AUTO
from llcg_dist.stopwatch import now
from llcg_dist.training.auto_s import StepChooser
from llcg_dist.training.fill_plan import FillPlan
from llcg_dist.training.screening import Models
from llcg_dist.training.trainer import Trainer


class Corrector:
    """Takes S gradient steps on the full graph: from the machines' average (`run`), or from the model that they start
    from (`run_beside`), after which `join` brings both together. S is a number, `auto` or `fill`."""

    def __init__(
        self, trainer: Trainer, chooser: StepChooser | None, plan: FillPlan | None, expected_steps: int
    ) -> None:
        """`chooser` chooses S=auto, `plan` has S=fill. `expected_steps`: of the next round's `run`, for prefetching;
        auto: as in the last one."""
        self.trainer, self.chooser, self.plan = trainer, chooser, plan
        self._expected_steps = expected_steps
        self._beside: Tensor | None = None
        self._notes: dict[str, Any] = {}

    def prefetch(self, round_: int) -> None:
        """Draws the mini-batches of the round's correction while the machines train."""
        if self._expected_steps:
            started = now()
            self.trainer.prefetch(round_, self._expected_steps)
            self._notes["seconds_prepare"] = (now() - started).seconds

    def run(self, theta: Tensor, models: Models, steps: int | str) -> Tensor:
        """`steps` steps from `theta`, which was made of `models`; with 0 steps theta itself, to the last bit."""
        self._note_updates(models)
        chosen = self._number_of(steps, theta, models.round)
        self._expected_steps = chosen
        return self._take(theta, models.round, chosen)

    def run_beside(self, theta: Tensor, round_: int, steps: int | str) -> None:
        """`steps` steps from `theta`, the model that the machines of this round start from. S=auto measures at `theta`
        too, and with the updates of the round before, so that nobody waits for it."""
        started = now()
        chosen = self._number_of(steps, theta, round_)
        led_to = self._take(theta, round_, chosen)
        self._beside = led_to if chosen else None
        took = now() - started
        self._notes |= {"seconds_correct_beside": took.seconds, "cpu_correct_beside": took.cpu}

    def join(self, average: Tensor, models: Models, weight: float) -> Tensor:
        """`average`, which was made of `models`, joined with where run_beside led to, which has this weight; where that
        took no step, `average` itself, to the last bit."""
        self._note_updates(models)
        beside, self._beside = self._beside, None
        return average if beside is None else joined(average, beside, weight, models.statistics)

    def _take(self, theta: Tensor, round_: int, steps: int) -> Tensor:
        self._notes["S"] = steps
        if steps == 0:
            return theta
        self.trainer.run_steps(theta, round_, steps)
        return self.trainer.theta().clone()

    def _number_of(self, steps: int | str, theta: Tensor, round_: int) -> int:
        """What `steps` means in this round."""
        if isinstance(steps, int):
            return steps
        if steps == AUTO:
            return self._choose(theta, round_)
        assert self.plan is not None
        return self.plan.steps(round_)

    def _choose(self, theta: Tensor, round_: int) -> int:
        assert self.chooser is not None
        started = now()
        steps, why = self.chooser.choose(theta, round_)
        self._notes |= why | {"seconds_auto_s": (now() - started).seconds}
        return steps

    def _note_updates(self, models: Models) -> None:
        if self.chooser is not None:
            self.chooser.note_updates(models.start, models.vectors, models.weights)

    def take_notes(self) -> dict[str, Any]:
        """Columns of the round's record: S, and why; taken once, at its end."""
        notes, self._notes = self._notes, {}
        return notes


def joined(average: Tensor, server: Tensor, weight: float, statistics: Tensor) -> Tensor:
    """(1 − weight)·average + weight·server, all [n]; BatchNorm's running statistics, where `statistics` [n] is True,
    are those of the average.

    The server's, after few batches, are still near those of the model that it began with: a round behind.
    """
    mean = (1 - weight) * average.double() + weight * server.double()
    return torch.where(statistics, average, mean.float())
