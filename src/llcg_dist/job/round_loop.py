"""The round loop. Line numbers are those of Algorithm 2 in the paper; machine.py has the machines' side of it.

The server sends the model first and evaluates the last one afterwards, while the machines already train on it:
evaluation (and the recalibration of BatchNorm, whose statistics play no part in training) hides behind the next round.
"""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from torch import Tensor

from llcg_dist.comm.messages import TrainStats
from llcg_dist.records.rows import RoundResult

if TYPE_CHECKING:
    from llcg_dist.job.server import Server


def run_rounds(server: "Server", theta: Tensor, first_round: int, unrecorded: RoundResult | None) -> Tensor:
    """Rounds first_round..R from `theta`; `unrecorded` is the round before them where it was not recorded yet."""
    algorithm, channel, previous = server.algorithm, server.channel, unrecorded
    for r in server.rounds_from(first_round):  # line 1
        clock = RoundClock()
        local_gradients = server.request_measurements(theta, r)
        algorithm.send_model(theta, r, server)  # line 3: the machines receive the model
        server.meanwhile(previous, local_gradients, r)  # while they train: evaluate and record round r-1
        clock.server_is_free()
        theta, replies = algorithm.local_phase(theta, r, server)  # lines 4-10: local steps, and the models they led to
        stats = [reply.stats for reply in replies if reply.stats]
        clock.all_have_replied()
        losses = [machine.train_loss for machine in stats]
        models = server.screener.models([reply.vector for reply in replies], losses, theta, r)
        average = algorithm.aggregate(theta, models)  # line 11
        theta = algorithm.correct(average, models, server.corrector)  # lines 12-17: S steps on the full graph
        previous = RoundResult(
            round=r,
            theta=theta,
            stats=stats,
            skipped_parts=models.skipped,
            traffic=channel.ledger.end_round(),
            notes=server.take_notes(),
            **clock.seconds(stats, channel.parallel),
        )
        server.checkpoint(previous)
    server.record(previous)
    return theta


class RoundClock:
    """Where the seconds of a round went, as the server sees it."""

    def __init__(self) -> None:
        self._started = self._free = self._replied = time.perf_counter()

    def server_is_free(self) -> None:
        """The server has done what it does while the machines train, and waits for them."""
        self._free = time.perf_counter()

    def all_have_replied(self) -> None:
        self._replied = time.perf_counter()

    def seconds(self, stats: Sequence[TrainStats], parallel: bool) -> dict[str, float]:
        """At the end of the round. What was neither local work nor the server's own is the exchange."""
        ended = time.perf_counter()
        own, local = self._free - self._started, [machine.seconds_local for machine in stats]
        busy = max([own, *local]) if parallel else own + sum(local)
        return {
            "seconds_exchange": max(0.0, self._replied - self._started - busy),
            "seconds_correct": ended - self._replied,
            "seconds_round": ended - self._started,
        }
