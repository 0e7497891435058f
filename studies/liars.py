"""A machine that lies: llcg where one part's machine sends something else than the model that its steps led to.

    algorithm=own algorithm.target=studies.liars.LyingLlcg algorithm.options.lie=x1000

Everything else is llcg, to the last bit. The lie leaves the machine as any update does, over processes or loopback.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from llcg_dist import seeding
from llcg_dist.algorithms.base import Handlers, MachineTools
from llcg_dist.algorithms.llcg import Llcg
from llcg_dist.comm.messages import Message, Train, Trained
from llcg_dist.config.schema import Config

Lie = Callable[[Tensor, Tensor], Tensor]
"""(the model that the machine's steps led to, the model that it was sent) -> what it sends."""

LIES: dict[str, Lie] = {
    "NaN": lambda theta, start: torch.full_like(theta, float("nan")),
    "x1e30": lambda theta, start: theta * 1e30,
    "x1000": lambda theta, start: theta * 1000,
    "x-5": lambda theta, start: theta * -5,
    "sign flip": lambda theta, start: 2 * start - theta,
}
STALE = "stale"
"""The model of its first lie, in every later round again."""
HONEST = "none"


class LyingLlcg(Llcg):
    """LLCG with a machine that lies from a round on."""

    def __init__(self, config: Config, lie: str = HONEST, part: int = 1, from_round: int = 3) -> None:
        super().__init__(config)
        if lie not in (*LIES, STALE, HONEST):
            raise TypeError(f"lie must be one of {', '.join([*LIES, STALE, HONEST])}")
        self._lie, self._part, self._from_round = lie, part, from_round
        self._first: Tensor | None = None

    def handlers(self, machine: MachineTools) -> Handlers:
        if self._lie == HONEST or machine.trainer.stream != seeding.part_stream(self._part):
            return {}

        def lying(request: Message) -> Message:
            start = request.vector.clone()
            machine.trainer.run_steps(start, request.round, machine.local_steps(request.round))
            theta, stats = machine.trainer.theta().clone(), machine.stats(request.round)
            if request.round >= self._from_round:
                theta = self._told(theta, start)
            return Trained(request.round, theta, stats=stats)

        return {Train: lying}

    def _told(self, theta: Tensor, start: Tensor) -> Tensor:
        if self._lie != STALE:
            return LIES[self._lie](theta, start)
        self._first = theta if self._first is None else self._first
        return self._first
