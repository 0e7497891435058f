"""A machine that begins while the others train: what it must have in common with them."""

from dataclasses import asdict
from typing import Any

import pytest

from llcg_dist.config.compose import load_config
from llcg_dist.errors import UserError
from llcg_dist.job.agreement import Identity, Offered
from llcg_dist.job.handshake import Failed, to_json
from llcg_dist.job.returning import Placed, begin_again
from llcg_dist.job.start import Start

CONFIG = load_config(["experiment=tiny"])
PLACED = Placed("run", [2, 1], ["a", "b"], asdict(Start(0, 8)), asdict(Identity.of(CONFIG)))


class Machine:
    """Answers with what it is given, one by one."""

    channel = None

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)

    def answer(self, content: dict[str, Any]) -> dict[str, Any]:
        return to_json(self._answers.pop(0))


def test_other_settings_are_named_with_both_values() -> None:
    other = Identity.of(load_config(["experiment=tiny", "seed=8"]))
    with pytest.raises(UserError, match=r"rank 2 has seed 8 \(rank 0: 0\): start all ranks alike"):
        begin_again(Machine(other), PLACED, 0)  # type: ignore[arg-type]


def test_a_part_that_is_not_there_is_named() -> None:
    answers = Identity.of(CONFIG), Offered([], []), Failed("part0: is not there")
    with pytest.raises(UserError, match="part0: is not there"):
        begin_again(Machine(*answers), PLACED, 0)  # type: ignore[arg-type]
