"""Lines 12-17 of Algorithm 2: the server's correction steps on the full graph."""

import time
from typing import Any

from torch import Tensor

from llcg_dist.training.auto_s import StepChooser
from llcg_dist.training.screening import Models
from llcg_dist.training.trainer import Trainer


class Corrector:
    """Takes S gradient steps on the full graph from the machines' average; S is a number, or `auto`."""

    def __init__(self, trainer: Trainer, chooser: StepChooser | None, expected_steps: int) -> None:
        """`chooser` chooses S=auto. `expected_steps`: of the next round, for prefetching; auto: as in the last one."""
        self.trainer, self.chooser = trainer, chooser
        self._expected_steps = expected_steps
        self._notes: dict[str, Any] = {}

    def prefetch(self, round_: int) -> None:
        """Draws the mini-batches of the round's correction while the machines train."""
        if self._expected_steps:
            started = time.perf_counter()
            self.trainer.prefetch(round_, self._expected_steps)
            self._notes["seconds_prepare"] = time.perf_counter() - started

    def run(self, theta: Tensor, models: Models, steps: int | str) -> Tensor:
        """`steps` steps from `theta`, which was made of `models`; with 0 steps theta itself, to the last bit."""
        chosen = self._choose(theta, models) if isinstance(steps, str) else steps
        self._notes["S"] = self._expected_steps = chosen
        if chosen == 0:
            return theta
        self.trainer.run_steps(theta, models.round, chosen)
        return self.trainer.theta().clone()

    def _choose(self, theta: Tensor, models: Models) -> int:
        assert self.chooser is not None
        started = time.perf_counter()
        self.chooser.note_updates(models.start, models.vectors, models.weights)
        steps, why = self.chooser.choose(theta, models.round)
        self._notes |= why | {"seconds_auto_s": time.perf_counter() - started}
        return steps

    def take_notes(self) -> dict[str, Any]:
        """Columns of the round's record: S, and why; taken once, at its end."""
        notes, self._notes = self._notes, {}
        return notes
