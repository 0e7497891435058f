"""What is learned about a run while it goes on: scores, records, diagnostics."""

import logging
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

from torch import Tensor

from llcg_dist.comm.channel import ServerChannel
from llcg_dist.comm.ledger import Ledger
from llcg_dist.comm.messages import Measure
from llcg_dist.config.schema import Config
from llcg_dist.config.train import WHEN_FREE
from llcg_dist.job.evaluations import Evaluations
from llcg_dist.job.machine import peak_rss_mb
from llcg_dist.records.model_files import BEST_FILE, LAST_FILE
from llcg_dist.records.recorder import Recorder
from llcg_dist.records.rows import RoundResult, Row
from llcg_dist.stopwatch import Elapsed
from llcg_dist.training.diagnostics import Diagnostics
from llcg_dist.training.evaluation import affordable_every

log = logging.getLogger(__name__)


class _Open(NamedTuple):
    """A round that is not recorded yet."""

    result: RoundResult
    checkpoint: Row
    evaluated: bool
    """Its row waits for scores."""


class Observer:
    """Has the model of a round evaluated and records it; measures the quantities of the paper's theorems where asked.

    Rows are written in the order of their rounds, each when its scores are there.
    """

    def __init__(
        self,
        config: Config,
        evaluations: Evaluations,
        recorder: Recorder,
        diagnostics: Diagnostics | None,
        steps: Sequence[Sequence[int]],
    ) -> None:
        """`steps`: local steps of every part's machine in rounds 1..R; the theorems speak of machines that take as
        many each."""
        self._config, self._evaluations, self._recorder = config, evaluations, recorder
        self._diagnostics, self._steps = diagnostics, steps
        self._open = deque[_Open]()
        self._explained_waiting = False
        self._notes: dict[str, Any] = {}

    @property
    def last_round(self) -> int:
        """Of the run, as far as is known: the rows may end it earlier than planned."""
        return self._recorder.stopping.last_round

    def local_steps(self, part: int, round_: int) -> int:
        """Of a part's machine, by the plan."""
        return self._steps[part][round_ - 1]

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
            self._notes |= self._diagnostics.measure(theta, round_, measured, self._steps[0])

    def take_notes(self) -> dict[str, Any]:
        notes, self._notes = self._notes, {}
        return notes

    @property
    def unrecorded(self) -> list[RoundResult]:
        """Rounds whose rows wait for scores, their own or those of a round before: what a checkpoint has to keep."""
        return [waiting.result for waiting in self._open]

    def record(self, result: RoundResult, checkpoint: Row) -> None:
        """Has the round evaluated where that is due, and records all rounds whose scores are there."""
        self._record_scored()
        due = self._is_due(result.round)
        if due:
            while self._evaluations.full:
                self._record_first(wait=True)
            self._evaluations.submit(result.scored)
        self._open.append(_Open(result, checkpoint, due))
        self._record_scored()

    def settle(self) -> None:
        """Waits until every round so far is recorded."""
        while self._open:
            self._record_first(wait=True)

    def _is_due(self, round_: int) -> bool:
        every = self._config.evaluate.every
        if every == WHEN_FREE:
            return round_ == self.last_round or not self._evaluations.busy
        return int(every) > 0 and (round_ % int(every) == 0 or round_ == self.last_round)

    def _record_scored(self) -> None:
        while self._open and self._record_first(wait=False):
            pass

    def _record_first(self, wait: bool) -> bool:
        """Records the first open round, and its model where it is the best so far; False: its scores are not there."""
        result, checkpoint, evaluated = self._open[0]
        scored = self._evaluations.take(wait) if evaluated else None
        if evaluated and scored is None:
            return False
        self._open.popleft()
        if scored and scored.best_state:
            self._recorder.models.save_best(result.round, scored.best_state)
        evaluation, took = (scored.evaluation, scored.took) if scored else (None, Elapsed())
        self._recorder.round(result, evaluation, took, checkpoint)
        if scored and result.round < self.last_round:
            self._explain_waiting(scored.took.seconds, result)
        return True

    def _explain_waiting(self, evaluating: float, result: RoundResult) -> None:
        """Once: what the server does while the machines train cannot hide behind local steps that take less time."""
        local = max((machine.seconds_local for machine in result.stats), default=evaluating)
        correcting = result.notes.get("seconds_correct_beside", 0.0)
        beside, every = self._evaluations.beside, self._config.evaluate.every
        left = local + result.seconds_correct if beside else max(0.0, local - correcting)
        affordable = None if every == WHEN_FREE else affordable_every(evaluating, left, int(every))
        if self._explained_waiting or not affordable:
            return
        self._explained_waiting = True
        if correcting > local and not beside:
            what, advice = ("the correction beside", correcting), "a smaller algorithm.S would do"
        else:
            advice = f"evaluate.every={affordable} would cost a tenth of the time at most"
            what, advice = ("evaluation", evaluating), advice + (", evaluate.every=auto nothing" if beside else "")
        log.warning(
            "%s takes longer (%.2g s) than the machines' local steps leave time for (%.2g s), and they wait for it: %s",
            *(*what, local if correcting > local else left, advice),
        )

    def finish(self, theta: Tensor, ledger: Ledger, audit: Row | None) -> Row:
        """Writes the last model, classes.json, summary.json and wire.json.

        The class results come before summary.json, which says that the run is finished: a run that is stopped in
        between writes them when it is resumed.
        """
        self.settle()
        final = self._evaluations.finished_model(theta)
        self._recorder.models.save(LAST_FILE, final)
        best_round = self._recorder.best_round
        best = self._recorder.models.saved(BEST_FILE) if best_round else None
        model = {"model": "best", "round": best_round} if best else {"model": "final", "round": self.last_round}
        self._recorder.save_class_results(model | self._evaluations.class_results(best or final))
        peaks = {"server": peak_rss_mb(), "evaluator": self._evaluations.peak_rss_mb}
        return self._recorder.finish(peaks, ledger, audit)
