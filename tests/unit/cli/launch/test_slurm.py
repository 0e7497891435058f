"""The layout of ranks on SLURM's nodes."""

import pytest

from llcg_dist.cli.launch.slurm import ranks_per_node


@pytest.mark.parametrize(
    ("ranks", "nodes", "layout"), [(9, 2, [5, 4]), (4, 2, [2, 2]), (1, 3, [1]), (2, 3, [1, 1]), (5, 3, [2, 2, 1])]
)
def test_ranks_are_spread_evenly(ranks: int, nodes: int, layout: list[int]) -> None:
    assert ranks_per_node(ranks, nodes) == layout
