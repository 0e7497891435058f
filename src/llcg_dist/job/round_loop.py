"""The round loop, once for the server and once for a machine. Line numbers are those of Algorithm 2 in the paper.

The server broadcasts first and judges the last model afterwards, while the machines already train on it: evaluation
(and the recomputing of BatchNorm statistics, which play no part in training) hides behind the next round.
"""

import time
from collections.abc import Sequence
from typing import Any, Protocol

from torch import Tensor

from llcg_dist.algorithms import Algorithm
from llcg_dist.algorithms.base import CorrectionSteps
from llcg_dist.comm.channel import MachineChannel, MachineProtocol, ServerChannel
from llcg_dist.comm.messages import MachineRound, TrainRequest, Update
from llcg_dist.records.rows import RoundResult


class Steward(Protocol):
    """What the server does around the loop, so that the loop reads like the algorithm."""

    def measures(self, round_: int) -> bool:
        """Whether this round begins with diagnostics."""

    def measure(self, theta: Tensor, gradients: Sequence[Tensor], round_: int) -> None:
        """Diagnostics at `theta`, given every machine's gradient there (where it holds `theta` rounded: at that)."""

    def message(self, theta: Tensor) -> Tensor:
        """What is sent to the machines for this model."""

    def prepare(self, round_: int) -> None:
        """Gets ready what the round's correction reads, while the machines train."""

    def share_steps(self, theta: Tensor, round_: int, channel: ServerChannel) -> Tensor:
        """Takes the round's steps together with the machines, along the mean of their gradients."""

    def screen_updates(
        self, theta: Tensor, updates: list[Update], round_: int
    ) -> tuple[list[Tensor], list[float], list[int]]:
        """The parameters that may be averaged, their weights, and the parts that were skipped."""

    def outer_step(self, theta: Tensor, average: Tensor) -> Tensor:
        """The next model, given the one that the machines started from and their average."""

    def notes(self) -> dict[str, Any]:
        """What the records shall say of this round besides: taken once, at its end."""

    def checkpoint(self, result: RoundResult) -> None:
        """Saves the round: from here on a crash does not lose it."""

    def evaluate_and_record(self, result: RoundResult) -> None:
        """Scores the round and records it."""

    def durable_round(self) -> int:
        """The newest round that every rank has on its disk."""


def run_server(
    algorithm: Algorithm,
    theta: Tensor,
    first_round: int,
    unrecorded: RoundResult | None,
    channel: ServerChannel,
    correction_steps: CorrectionSteps,
    steward: Steward,
) -> Tensor:
    """Rounds first_round..R from `theta`; `unrecorded` is a round before them that is not recorded yet."""
    for r in range(first_round, algorithm.config.num_rounds + 1):  # line 1
        started = time.perf_counter()
        kept = algorithm.shares_gradients and r > first_round  # then the machines hold the same model already
        message = None if kept else steward.message(theta)
        channel.broadcast(TrainRequest(message, steward.durable_round()))  # line 3: machines receive the model
        measured = channel.gather_measured() if steward.measures(r) else None
        if unrecorded is not None:
            steward.evaluate_and_record(unrecorded)  # round r-1, while the machines train round r
        if measured is not None:
            steward.measure(theta, measured, r)
        steward.prepare(r)
        free = time.perf_counter()
        if algorithm.shares_gradients:
            theta = steward.share_steps(theta, r, channel)
        updates = channel.gather(r)  # lines 4-10: machines take steps(r) steps and send
        received_at = time.perf_counter()
        thetas, weights, skipped = steward.screen_updates(theta, list(updates), r)
        theta = steward.outer_step(theta, algorithm.average(theta, thetas, weights))  # line 11
        theta = algorithm.correct(theta, r, correction_steps)  # lines 12-17: S steps on the whole graph
        ended = time.perf_counter()
        own, local = free - started, [update.stats.seconds_local for update in updates]
        busy = max([own, *local]) if channel.parallel else own + sum(local)
        unrecorded = RoundResult(
            round=r,
            theta=theta,
            stats=[update.stats for update in updates],
            skipped_parts=skipped,
            traffic=channel.ledger.end_round(),
            seconds_exchange=max(0.0, received_at - started - busy),
            seconds_correct=ended - received_at,
            seconds_round=ended - started,
            notes=steward.notes(),
        )
        steward.checkpoint(unrecorded)
    if unrecorded is not None:
        steward.evaluate_and_record(unrecorded)
    return theta


def run_machine(first_round: int, num_rounds: int, machine: MachineProtocol, channel: MachineChannel) -> None:
    for r in range(first_round, num_rounds + 1):  # line 1
        request = machine.receive(channel.receive())  # line 3
        if machine.measures(r) and request.theta is not None:
            channel.send_measured(machine.measure(request.theta))
        update = _in_step(machine.learn(request, r), channel)  # lines 4-9
        channel.send(update)  # line 10


def _in_step(machine: MachineRound, channel: MachineChannel) -> Update:
    """Answers every gradient that the machine yields with the mean of all."""
    try:
        gradient = next(machine)
        while True:
            gradient = machine.send(channel.mean_gradient(gradient))
    except StopIteration as ended:
        return ended.value
