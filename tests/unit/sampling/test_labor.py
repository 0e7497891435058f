"""sampling.method=labor: nodes agree on the neighbours that they draw."""

import math
from collections.abc import Sequence

import numpy as np
import pytest

from llcg_dist.config.train import Fanout
from llcg_dist.sampling.minibatch import Sample
from llcg_dist.sampling.neighbor import NeighborSampler
from tests.helpers.graphs import community_graph
from tests.helpers.samples import GRAPH, ROWS, SEEDS, block_rows, same, sampled


def labor(fanouts: Sequence[Fanout], seed: int, seeds: np.ndarray) -> Sample:
    return NeighborSampler(GRAPH, fanouts, "labor").sample(seeds, seed)


EVERYONE = np.arange(GRAPH.num_nodes)


def test_labor_is_seeded() -> None:
    assert same(labor([2, 2], 3, EVERYONE), labor([2, 2], 3, EVERYONE))
    assert not same(labor([2, 2], 3, EVERYONE), labor([2, 2], 4, EVERYONE))


@pytest.mark.parametrize("fanout", [2, 0.4])
def test_labor_takes_as_many_real_neighbours_and_nodes_agree_on_them(fanout: float) -> None:
    """No node passes over a common neighbour for one that another passes over for it."""
    batch = labor([fanout], 3, EVERYONE)
    before = set()
    for node, row in zip(batch.nodes[: len(EVERYONE)].tolist(), block_rows(batch.blocks[0], batch), strict=True):
        degree = len(ROWS[node])
        assert len(row) == len(set(row)) == (math.ceil(fanout * degree) if fanout < 1 else min(fanout, degree))
        assert set(row) <= set(ROWS[node])
        before |= {(taken, left) for taken in row for left in set(ROWS[node]) - set(row)}
    assert len(before) > 100
    assert not before & {(left, taken) for taken, left in before}


def test_labor_draws_every_neighbour_alike() -> None:
    node = max(range(60), key=lambda i: len(ROWS[i]))
    draws, degree = 600, len(ROWS[node])
    counts = dict.fromkeys(ROWS[node], 0)
    for seed in range(draws):
        batch = labor([2], seed, np.array([node]))
        for neighbour in block_rows(batch.blocks[0], batch)[0]:
            counts[neighbour] += 1
    share = 2 / degree
    deviation = math.sqrt(draws * share * (1 - share))
    assert max(abs(count - draws * share) for count in counts.values()) < 4 * deviation


def test_labor_reads_as_many_neighbours_and_fewer_rows() -> None:
    big = community_graph(2000, seed=1)
    seeds = np.arange(400)
    rows, edges = {"neighbor": 0, "labor": 0}, {"neighbor": 0, "labor": 0}
    for method in rows:
        sampler = NeighborSampler(big, [2], method)
        for seed in range(20):
            batch = sampler.sample(seeds, seed)
            rows[method] += len(batch.nodes)
            edges[method] += len(batch.blocks[0].indices)
    assert edges["labor"] == edges["neighbor"]
    assert rows["labor"] < 0.95 * rows["neighbor"]


def test_all_neighbours_are_all_neighbours_with_labor_too() -> None:
    assert same(labor([-1, -1], 3, SEEDS), sampled([-1, -1], 3))
