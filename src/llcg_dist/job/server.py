"""The server: rank 0, the trusted party, which alone holds the full graph."""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from torch import Tensor

from llcg_dist.algorithms.base import Algorithm
from llcg_dist.comm.channel import ServerChannel
from llcg_dist.comm.messages import Finish, Message, Restore, TrainStats
from llcg_dist.config.cluster import LatePolicy
from llcg_dist.errors import TrainingError
from llcg_dist.job.observer import Observer
from llcg_dist.job.round_loop import run_rounds
from llcg_dist.job.server_checkpoints import ServerCheckpoints
from llcg_dist.records.rows import RoundResult, Row
from llcg_dist.training.correction import Corrector
from llcg_dist.training.screening import Models, Screener


class Server:
    """What the round loop works with, and what the server does around it."""

    def __init__(
        self,
        algorithm: Algorithm,
        channel: ServerChannel,
        corrector: Corrector,
        screener: Screener,
        checkpoints: ServerCheckpoints,
        observer: Observer,
    ) -> None:
        self.algorithm, self.channel, self.corrector, self.screener = algorithm, channel, corrector, screener
        self._checkpoints, self._observer = checkpoints, observer

    def train(self, audit: Callable[[], Row | None] = lambda: None) -> Row:
        """All rounds that are left; returns the summary, which it also writes. `audit` is asked after the last
        exchange for its verdict on what crossed."""
        theta, first_round, unrecorded = self._checkpoints.start()
        for earlier in unrecorded[:-1]:
            self.record(earlier)
        if self._checkpoints.lost_parts:
            self._restore_machines(first_round - 1, self.channel.members.present)
        theta = run_rounds(self, theta, first_round, unrecorded[-1] if unrecorded else None)
        self.channel.finish(Finish(self._observer.last_round, durable_round=self.durable_round))
        self._checkpoints.finish()
        return self._observer.finish(self.algorithm.running_average.scored(theta), self.channel.ledger, audit())

    def _restore_machines(self, round_: int, parts: Sequence[int]) -> list[int]:
        """Machines that have lost their state, or have none yet, get what all machines share after this round. Returns
        the parts of those that have it."""
        for vector in (*self.algorithm.shared_state(self), None):
            if parts:
                self.channel.send(Restore(round_, vector), parts)
                parts = [reply.part for reply in self.channel.replies() if reply.part is not None]
        return list(parts)

    def rounds_from(self, first_round: int) -> Iterator[int]:
        """The rounds that are left; what is recorded meanwhile may make them fewer. Each begins with those machines
        that are there, or back."""
        stops_early = bool(self.algorithm.config.early_stop.patience)
        for round_ in itertools.count(first_round):
            if stops_early:  # the round before the last decides whether this one is run
                self._observer.settle()
            if round_ > self._observer.last_round:
                return
            for part in self.channel.admit(round_):
                self.channel.members.admit(self._restore_machines(round_ - 1, [part]))
            self._take_late(round_)
            yield round_

    def _take_late(self, round_: int) -> None:
        """Machines that rounds before have ended without, and that have answered since, train again."""
        answers, cluster = self.channel.take_late(round_), self.algorithm.config.cluster
        self._restore_machines(round_ - 1, [answer.part for answer in answers])
        if cluster.late == LatePolicy.damp:
            self.screener.late_updates.add(answers)

    def waited(self, round_: int) -> float | None:
        """cluster.deadline, where the round has ended with it."""
        ended = round_ in self.channel.members.late.values()
        return self.algorithm.config.cluster.deadline if ended else None

    def screen(self, replies: Sequence[Message], theta: Tensor, round_: int) -> Models:
        """What of these, and of what has come late, may be averaged; `theta` is what the machines started from."""
        of_part = dict(zip(_parts(replies), replies, strict=True))
        vectors = {part: reply.vector for part, reply in of_part.items()}
        vectors, shares = self.screener.late_updates.join(vectors, theta, round_)
        if not vectors and self.channel.members.late:  # the others are lost: the model waits for those that are left
            vectors = {min(self.channel.members.late): theta}
        stats = {part: reply.stats for part, reply in of_part.items() if reply.stats}
        losses = [stats[part].train_loss if part in stats else math.nan for part in vectors]
        return self.screener.models(list(vectors.values()), losses, theta, round_, list(vectors), shares)

    @property
    def durable_round(self) -> int:
        """The newest round that every rank has a checkpoint of."""
        return self._checkpoints.durable_round

    def request_measurements(self, theta: Tensor, round_: int) -> Sequence[Tensor] | None:
        """Every machine's gradient at `theta`, in a round that begins with diagnostics."""
        return self._observer.request_measurements(theta, round_, self.channel)

    def meanwhile(self, previous: RoundResult | None, measured: Sequence[Tensor] | None, round_: int) -> None:
        """What the server does while the machines train: take the steps of those that are gone, evaluate and record the
        round before, diagnose this one, and draw the mini-batches of its correction."""
        self.channel.stand_in()
        self.record(previous)
        self._observer.diagnose(self.channel.held, measured, round_)
        self.corrector.prefetch(round_)

    def reports(self, replies: Sequence[Message], round_: int) -> list[TrainStats]:
        """What the machines tell about the round. One that took another number of steps than the plan has is named."""
        for part, reply in zip(_parts(replies), replies, strict=True):
            planned = self._observer.local_steps(part, round_)
            if reply.stats and reply.stats.steps != planned:
                what = f"{reply.stats.steps} local steps in round {round_}, not {planned}"
                raise TrainingError(f"{self.channel.names[part]} reported {what}")
        return [reply.stats for reply in replies if reply.stats]

    def record(self, result: RoundResult | None) -> None:
        """Has a round evaluated and recorded; None: there is none."""
        if result is not None:
            self._observer.record(result, self._checkpoints.columns(result))

    def checkpoint(self, result: RoundResult) -> None:
        """Saves the round: from here on a crash does not lose it."""
        self._checkpoints.save(result, self._observer.unrecorded)

    def take_notes(self) -> dict[str, Any]:
        """Further columns of the round's record: what was measured, what was chosen and why. Taken once, at its end."""
        own = self._observer.take_notes() | self.corrector.take_notes() | self._checkpoints.take_notes()
        return own | self.channel.members.take_columns()


def _parts(replies: Sequence[Message]) -> list[int]:
    """Whose the replies are; a method of the user's own may have made them, of every part one."""
    return [place if reply.part is None else reply.part for place, reply in enumerate(replies)]
