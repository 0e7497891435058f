"""What is learned about a run while it goes on: scores, records, diagnostics."""

import logging
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from llcg_dist.comm.channel import ServerChannel
from llcg_dist.comm.ledger import Ledger
from llcg_dist.comm.messages import Measure
from llcg_dist.config.schema import Config
from llcg_dist.job.machine import peak_rss_mb
from llcg_dist.records.recorder import Recorder
from llcg_dist.records.rows import RoundResult, Row
from llcg_dist.stopwatch import now
from llcg_dist.training.diagnostics import Diagnostics
from llcg_dist.training.evaluation import Evaluator, affordable_every

log = logging.getLogger(__name__)


class Observer:
    """Evaluates the model of a round and records it; measures the quantities of the paper's theorems where asked."""

    def __init__(
        self,
        config: Config,
        evaluator: Evaluator,
        recorder: Recorder,
        diagnostics: Diagnostics | None,
        steps: Sequence[int],
    ) -> None:
        """`steps`: local steps of rounds 1..R, which the theorems speak of."""
        self._config, self._evaluator, self._recorder = config, evaluator, recorder
        self._diagnostics, self._steps = diagnostics, steps
        self._explained_waiting = False
        self._notes: dict[str, Any] = {}

    @property
    def last_round(self) -> int:
        """Of the run, as far as is known: the rows may end it earlier than planned."""
        return self._recorder.stopping.last_round

    def local_steps(self, round_: int) -> int:
        """Of every machine, by the plan."""
        return self._steps[round_ - 1]

    def request_measurements(self, theta: Tensor, round_: int, channel: ServerChannel) -> Sequence[Tensor] | None:
        every = self._config.diagnostics.every
        if self._diagnostics is None or not every or round_ % every:
            return None
        channel.send(Measure(round_, theta))
        return [reply.vector.clone() for reply in channel.replies()]  # the next replies will arrive in their place

    def diagnose(self, theta: Tensor, measured: Sequence[Tensor] | None, round_: int) -> None:
        """`measured`: the machines' gradients at `theta`; None where this round has none."""
        if measured is not None:
            assert self._diagnostics is not None
            self._notes |= self._diagnostics.measure(theta, round_, measured, self._steps)

    def take_notes(self) -> dict[str, Any]:
        notes, self._notes = self._notes, {}
        return notes

    def record(self, result: RoundResult, checkpoint: Row) -> None:
        """Evaluates the round where that is due, keeps its model where it is the best so far, and writes its row."""
        started = now()
        every = self._config.evaluate.every
        due = every > 0 and (result.round % every == 0 or result.round == self.last_round)
        evaluation = self._evaluator.evaluate(result.theta) if due else None
        best = self._recorder.best_score
        if evaluation and evaluation.val is not None and (best is None or evaluation.val > best):
            self._recorder.save_model("best.pt", self._evaluator.state_dict())
        evaluating = now() - started
        self._recorder.round(result, evaluation, evaluating, checkpoint)
        if due and result.round < self.last_round:
            self._explain_waiting(evaluating.seconds, result)

    def _explain_waiting(self, evaluating: float, result: RoundResult) -> None:
        """Once: what the server does while the machines train cannot hide behind local steps that take less time."""
        local = max((machine.seconds_local for machine in result.stats), default=evaluating)
        correcting = result.notes.get("seconds_correct_beside", 0.0)
        every = affordable_every(evaluating, max(0.0, local - correcting), self._config.evaluate.every)
        if self._explained_waiting or not every:
            return
        self._explained_waiting = True
        if correcting > local:
            what, advice = ("the correction beside", correcting), "a smaller algorithm.S would do"
        else:
            what, advice = ("evaluation", evaluating), f"evaluate.every={every} would cost a tenth of the time at most"
        log.warning(
            "%s takes longer (%.2g s) than the machines' local steps leave time for (%.2g s), and they wait for it: %s",
            *(*what, local if correcting > local else local - correcting, advice),
        )

    def finish(self, theta: Tensor, ledger: Ledger, audit: Row | None) -> Row:
        """Writes the last model, classes.json, summary.json and wire.json.

        The class results come before summary.json, which says that the run is finished: a run that is stopped in
        between writes them when it is resumed.
        """
        final = self._evaluator.finished_model(theta)
        self._recorder.save_model("model.pt", final)
        best_round = self._recorder.best_round
        best = self._recorder.saved_model("best.pt") if best_round else None
        model = {"model": "best", "round": best_round} if best else {"model": "final", "round": self.last_round}
        self._recorder.save_class_results(model | self._evaluator.class_results(best or final))
        return self._recorder.finish(peak_rss_mb(), ledger, audit)
