"""What the server asks of the machines' reports."""

from types import SimpleNamespace
from typing import Any

import pytest

from llcg_dist.comm.messages import Trained
from llcg_dist.errors import TrainingError
from llcg_dist.job.server import Server
from tests.helpers.fake_machines import stats


def test_a_machine_that_took_other_steps_than_planned_is_named() -> None:
    channel: Any = SimpleNamespace(names=["rank 1 (part 0)", "rank 2 (part 1)"])
    observer: Any = SimpleNamespace(local_steps=lambda part, round_: 3 if round_ == 7 else 4)
    nothing: Any = None
    server = Server(nothing, channel, nothing, nothing, nothing, observer)
    honest = Trained(7, stats=stats())
    assert server.reports([honest, honest], 7) == [honest.stats, honest.stats]
    with pytest.raises(TrainingError, match=r"^rank 2 \(part 1\) reported 5 local steps in round 7, not 3$"):
        server.reports([honest, Trained(7, stats=stats(steps=5))], 7)
