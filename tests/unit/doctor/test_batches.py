"""The predicted size of a batch against the batch that is built."""

import numpy as np
import pytest

from llcg_dist.data.graph import TRAIN
from llcg_dist.doctor.batches import estimate_batch
from llcg_dist.sampling.neighbor import NeighborSampler
from tests.helpers.graphs import community_graph, graph_of

GRAPH = community_graph(2_000)
TRAINING = GRAPH.nodes_in(TRAIN)


def built(batch_size: int, fanouts: list[int]) -> list[float]:
    """Rows of each layer, the mean over a few batches."""
    rng, sampler, counts = np.random.default_rng(0), NeighborSampler(GRAPH, fanouts), []
    for seed in range(5):
        batch = sampler.sample(rng.choice(TRAINING, batch_size, replace=False), seed)
        counts.append([*(block.num_src for block in batch.blocks), batch_size])
    return list(np.mean(counts, axis=0))


@pytest.mark.parametrize("fanouts", [[-1, -1], [3, 3], [10, 2, -1], []])
@pytest.mark.parametrize("batch_size", [1, 20, 200])
def test_the_estimate_is_near_what_is_built(batch_size: int, fanouts: list[int]) -> None:
    estimates = [estimate_batch(GRAPH, TRAINING, batch_size, fanouts, seed).rows for seed in range(5)]
    tolerance = 0.35 if batch_size == 1 else 0.1  # one node's neighbourhood differs much from another's
    assert list(np.mean(estimates, axis=0)) == pytest.approx(built(batch_size, fanouts), rel=tolerance)


def test_reading_few_edges_still_gives_a_fair_estimate_and_rather_too_much() -> None:
    for fanouts in ([-1, -1], [4, 4, 4]):
        estimate = estimate_batch(GRAPH, TRAINING, 200, fanouts, limit=300).rows
        for guess, truth in zip(estimate, built(200, fanouts), strict=True):
            assert 0.8 * truth <= guess <= 1.5 * truth


def test_the_same_seed_gives_the_same_estimate_and_the_batch_is_never_larger_than_its_candidates() -> None:
    assert estimate_batch(GRAPH, TRAINING, 50, [5, 5], 3) == estimate_batch(GRAPH, TRAINING, 50, [5, 5], 3)
    assert estimate_batch(GRAPH, TRAINING[:7], 50, [5], 3).rows[-1] == 7


def test_a_star_by_hand() -> None:
    star = graph_of([(0, leaf) for leaf in range(1, 11)], 11)
    leaf = np.array([3])
    assert estimate_batch(star, leaf, 1, [-1, -1]).rows == [11, 2, 1]
    assert estimate_batch(star, leaf, 1, [-1, -1]).edges == [11, 1]
    sampled = estimate_batch(star, leaf, 1, [4, -1])
    assert sampled.edges == [5, 1]
    assert 5 <= sampled.rows[0] <= 6  # the hub's four may hold the leaf itself


def test_nodes_without_neighbours() -> None:
    lonely = graph_of([(0, 1)], 5)
    assert estimate_batch(lonely, np.array([2, 3, 4]), 3, [-1, 10]).rows == [3, 3, 3]


def test_a_fanout_beyond_every_degree_is_all_neighbours() -> None:
    everything = estimate_batch(GRAPH, TRAINING, 50, [-1, -1])
    assert estimate_batch(GRAPH, TRAINING, 50, [2**70, 2**31]) == everything
