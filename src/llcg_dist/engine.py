"""The round loop, once for the server and once for a machine. Line numbers are those of Algorithm 2 in the paper.

The server broadcasts first and judges the last model afterwards, while the machines already train on it: evaluation
(and the recomputing of BatchNorm statistics, which play no part in training) hides behind the next round.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor

from llcg_dist.algorithms import Algorithm
from llcg_dist.algorithms.base import Walk
from llcg_dist.comm.channel import MachineChannel, Report, ServerChannel, Update
from llcg_dist.comm.ledger import Traffic


@dataclass(frozen=True)
class RoundResult:
    """What a round leaves behind for the records."""

    round: int
    theta: Tensor
    reports: list[Report]
    traffic: Traffic
    seconds_exchange: float
    seconds_correct: float
    seconds_round: float


def run_server(
    algorithm: Algorithm,
    theta: Tensor,
    channel: ServerChannel,
    walk: Walk,
    weights: Sequence[float],
    judge: Callable[[RoundResult], None],
) -> Tensor:
    """Rounds 1..R from the initial parameters; `judge` scores and records a finished round."""
    finished: RoundResult | None = None
    for r in range(1, algorithm.config.num_rounds + 1):  # line 1
        started = time.perf_counter()
        channel.broadcast(theta)  # line 3: machines receive the model
        if finished is not None:
            judge(finished)  # round r-1, while the machines train round r
        judged = time.perf_counter()
        updates = channel.gather(r)  # lines 4-10: machines take steps(r) steps and send
        gathered = time.perf_counter()
        theta = algorithm.average(theta, updates, weights)  # line 11
        theta = algorithm.correct(theta, r, walk)  # lines 12-17: S steps on the whole graph
        ended = time.perf_counter()
        judging, local = judged - started, [update.report.seconds_local for update in updates]
        busy = max([judging, *local]) if channel.parallel else judging + sum(local)
        finished = RoundResult(
            round=r,
            theta=theta,
            reports=[update.report for update in updates],
            traffic=channel.ledger.end_round(),
            seconds_exchange=max(0.0, gathered - started - busy),
            seconds_correct=ended - gathered,
            seconds_round=ended - started,
        )
    assert finished is not None
    judge(finished)
    return theta


def run_machine(num_rounds: int, learn: Callable[[Tensor, int], Update], channel: MachineChannel) -> None:
    for r in range(1, num_rounds + 1):  # line 1
        theta = channel.receive()  # line 3
        update = learn(theta, r)  # lines 4-9
        channel.send(update)  # line 10
