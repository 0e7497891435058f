"""The round loop. Line numbers are those of Algorithm 2 in the paper; machine.py has the machines' side of it.

The server sends the model first and evaluates the last one afterwards, while the machines already train on it:
evaluation (and the recalibration of BatchNorm, whose statistics play no part in training) hides behind the next round.
With algorithm.correction=beside so do the server's own steps, which come first: the next model needs them.
"""

from typing import TYPE_CHECKING

from torch import Tensor

from llcg_dist.data import progress
from llcg_dist.job.round_clock import RoundClock
from llcg_dist.records.rows import RoundResult

if TYPE_CHECKING:
    from llcg_dist.job.server import Server


def run_rounds(server: "Server", theta: Tensor, first_round: int, unrecorded: RoundResult | None) -> Tensor:
    """Rounds first_round..R from `theta`; `unrecorded` is the round before them where it was not recorded yet."""
    algorithm, channel, previous = server.algorithm, server.channel, unrecorded
    for r in server.rounds_from(first_round):  # line 1
        progress.begin(f"round {r}")
        clock = RoundClock()
        local_gradients = server.request_measurements(theta, r)
        clock.ended("measure")
        algorithm.send_model(theta, r, server)  # line 3: the machines receive the model
        clock.ended("send")
        algorithm.correct_beside(theta, r, server.corrector)  # correction=beside: lines 12-17, as they train
        clock.ended("correct_beside")
        server.meanwhile(previous, local_gradients, r)  # while they train: evaluate and record round r-1
        clock.ended("evaluate")
        theta, replies = algorithm.local_phase(theta, r, server)  # lines 4-10: local steps, and the models they led to
        stats = server.reports(replies, r)
        clock.ended("wait")
        models = server.screen(replies, theta, r)
        average = algorithm.aggregate(theta, models)  # line 11
        theta = algorithm.correct(average, models, server.corrector)  # lines 12-17: S steps on the full graph
        clock.ended("correct")
        previous = RoundResult(
            round=r,
            theta=theta,
            stats=stats,
            skipped_parts=models.skipped,
            traffic=channel.ledger.end_round(),
            notes=models.notes | server.take_notes(),
            warnings=models.warnings,
            average=algorithm.running_average.step(theta, r),  # evaluate.ema
            **clock.columns(stats, channel.parallel, algorithm.trains_on_parts, server.waited(r)),
        )
        server.checkpoint(previous)
    server.record(previous)
    return theta
