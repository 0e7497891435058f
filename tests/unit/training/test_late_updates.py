"""Late updates, with numbers worked out by hand."""

from dataclasses import dataclass

import torch
from torch import Tensor

from llcg_dist.training.late_updates import LateUpdates

STATISTICS = torch.tensor([False, False, True])


@dataclass(frozen=True)
class Late:
    part: int
    round: int
    start: Tensor
    model: Tensor


def late(part: int, round_: int) -> Late:
    """Moved by (1, -2) from (10, 10); its statistics are 7."""
    return Late(part, round_, torch.tensor([10.0, 10, 5]), torch.tensor([11.0, 8, 7]))


def test_a_late_update_alone_has_a_weight_that_falls_with_age() -> None:
    updates, start = LateUpdates(STATISTICS), torch.tensor([20.0, 30, 6])
    updates.add([late(1, round_=3)])
    joined, shares = updates.join({0: start, 2: start}, start, round_=6)
    assert list(joined) == [0, 1, 2]
    assert joined[1].tolist() == [21, 28, 7]
    assert shares == {1: 0.25}
    assert updates.join({0: start}, start, 7) == ({0: start}, {}), "each is taken once"


def test_a_part_has_one_voice() -> None:
    """Half of it is the late update's after one round; its machine, or the server in its place, has the rest."""
    updates, start = LateUpdates(STATISTICS), torch.tensor([20.0, 30, 6])
    updates.add([late(1, round_=3)])
    joined, shares = updates.join({1: torch.tensor([23.0, 26, 9])}, start, round_=4)
    assert joined[1].tolist() == [22, 27, 8]
    assert shares == {}
