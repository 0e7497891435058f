"""The layout of ranks on SLURM's nodes."""

import pytest

from llcg_dist.cli.launch.slurm import ranks_per_node, run_slurm
from llcg_dist.errors import UserError


@pytest.mark.parametrize(
    ("ranks", "nodes", "layout"), [(9, 2, [5, 4]), (4, 2, [2, 2]), (1, 3, [1]), (2, 3, [1, 1]), (5, 3, [2, 2, 1])]
)
def test_ranks_are_spread_evenly(ranks: int, nodes: int, layout: list[int]) -> None:
    assert ranks_per_node(ranks, nodes) == layout


def test_a_controller_that_does_not_answer_is_one_line() -> None:
    with pytest.raises(UserError, match=r"^sleep 9: no answer from SLURM within 0.1 s"):
        run_slurm(["sleep", "9"], 0.1)
