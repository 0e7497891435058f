"""Blocks against the graph they come from."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats

from llcg_dist.data.csr import Topology
from llcg_dist.data.graph import TRAIN
from llcg_dist.sampling.neighbor import NeighborSampler
from tests.helpers.graphs import community_graph, graph_of
from tests.helpers.samples import GRAPH, ROWS, SEEDS, block_rows, same, sampled

# A path, a triangle on it and a node alone.
LITTLE = graph_of([(0, 1), (1, 2), (2, 3), (1, 3)], 5)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_with_all_neighbours_blocks_are_the_graphs_rows(depth: int) -> None:
    batch = sampled([-1] * depth)
    assert len(batch.blocks) == depth
    assert batch.seeds.tolist() == SEEDS.tolist()
    for block in batch.blocks:
        computed = batch.nodes[: block.num_dst].tolist()
        assert [sorted(row) for row in block_rows(block, batch)] == [ROWS[node] for node in computed]
        assert block.degree.tolist() == [len(ROWS[node]) for node in batch.nodes[: block.num_src].tolist()]
    # Layers fit together: what one computes, the next reads.
    for before, after in zip(batch.blocks, batch.blocks[1:], strict=False):
        assert before.num_dst == after.num_src
    assert batch.blocks[-1].num_dst == len(SEEDS)
    assert batch.blocks[0].num_src == len(batch.nodes) == len(set(batch.nodes.tolist()))
    assert batch.nodes[: len(SEEDS)].tolist() == SEEDS.tolist()


@pytest.mark.parametrize("fanouts", [[1, 1], [3, 2], [2, -1], [100, 4]])
def test_fanouts_limit_each_layer_and_nobody_is_drawn_twice(fanouts: list[int]) -> None:
    for seed in range(20):
        batch = sampled(fanouts, seed)
        for block, fanout in zip(batch.blocks, fanouts, strict=True):
            for node, row in zip(batch.nodes[: block.num_dst].tolist(), block_rows(block, batch), strict=True):
                assert len(row) == len(set(row))
                assert set(row) <= set(ROWS[node])
                assert len(row) == (len(ROWS[node]) if fanout == -1 else min(fanout, len(ROWS[node])))


def test_the_seed_decides() -> None:
    first = sampled([3, 3], seed=1)
    other = sampled([3, 3], seed=2)
    NeighborSampler(LITTLE, [1]).sample(np.array([1]), 77)  # another machine in the same process
    torch.rand(3)
    assert same(sampled([3, 3], seed=1), first)
    assert not same(other, first)


def test_one_sampler_repeats_itself_in_any_order() -> None:
    sampler = NeighborSampler(GRAPH, [2, 2])
    forth = [sampler.sample(SEEDS, seed) for seed in range(5)]
    back = [sampler.sample(SEEDS, seed) for seed in reversed(range(5))]
    assert all(same(a, b) for a, b in zip(forth, reversed(back), strict=True))


def test_every_neighbour_gets_its_turn() -> None:
    node = max(range(60), key=lambda i: len(ROWS[i]))
    seen: set[int] = set()
    for seed in range(100):
        batch = sampled([2], seed, np.array([node]))
        seen |= set(block_rows(batch.blocks[0], batch)[0])
    assert seen == set(ROWS[node])


def test_without_layers_that_pass_messages_a_batch_is_its_seeds() -> None:
    batch = sampled([])
    assert batch.nodes.tolist() == batch.seeds.tolist() == SEEDS.tolist()
    assert len(batch.blocks) == 0


def test_a_node_alone_has_an_empty_row() -> None:
    batch = sampled([3, 3], seeds=np.array([4]), graph=LITTLE)
    assert batch.nodes.tolist() == [4]
    assert all(len(block.indices) == 0 for block in batch.blocks)


@pytest.mark.parametrize("share", [0.05, 0.2, 0.5, 0.99])
def test_a_share_of_every_nodes_neighbours(share: float) -> None:
    for seed in range(10):
        batch = sampled([share, share], seed)
        for block in batch.blocks:
            for node, row in zip(batch.nodes[: block.num_dst].tolist(), block_rows(block, batch), strict=True):
                assert len(row) == len(set(row)) == math.ceil(share * len(ROWS[node]))
                assert set(row) <= set(ROWS[node])


def test_shares_are_seeded_and_every_neighbour_has_its_chance() -> None:
    assert same(sampled([0.3], seed=4), sampled([0.3], seed=4))
    assert not same(sampled([0.3], seed=4), sampled([0.3], seed=5))
    seen = {n for seed in range(60) for n in block_rows(sampled([0.3], seed).blocks[0], sampled([0.3], seed))[0]}
    assert seen == set(ROWS[SEEDS[0]])


def test_a_fanout_beyond_every_degree_takes_all_neighbours_and_no_more_memory() -> None:
    graph = community_graph()
    seeds = graph.nodes_in(TRAIN)
    everything = NeighborSampler(graph, [-1, -1]).sample(seeds, 0)
    for fanout in (graph.num_nodes, 2**31, 2**70):
        batch = NeighborSampler(graph, [fanout, fanout]).sample(seeds, 0)
        assert [block.num_src for block in batch.blocks] == [block.num_src for block in everything.blocks]
        assert [len(block.indices) for block in batch.blocks] == [len(block.indices) for block in everything.blocks]


def drawn_sets(method: str, fanout: int, draws: int, node: int, seeds: np.ndarray) -> dict[frozenset[int], int]:
    """How often each set of neighbours was drawn for a node."""
    sampler, found = NeighborSampler(GRAPH, [fanout], method), dict[frozenset[int], int]()
    place = seeds.tolist().index(node)
    for seed in range(draws):
        batch = sampler.sample(seeds, seed)
        row = frozenset(block_rows(batch.blocks[0], batch)[place])
        found[row] = found.get(row, 0) + 1
    return found


@pytest.mark.parametrize("method", ["neighbor", "labor"])
def test_every_set_of_neighbours_is_equally_likely(method: str) -> None:
    """Chi-square over all sets of three; the chance that a right sampler fails is one in a million."""
    node = min((i for i in range(60) if len(ROWS[i]) >= 6), key=lambda i: len(ROWS[i]))
    sets, draws = math.comb(len(ROWS[node]), 3), 4000
    found = drawn_sets(method, 3, draws, node, np.array([node]))
    assert len(found) == sets
    statistic = sum((count - draws / sets) ** 2 / (draws / sets) for count in found.values())
    assert statistic < stats.chi2.ppf(1 - 1e-6, sets - 1)


def test_many_neighbours_are_drawn_alike_too() -> None:
    """Above 48 another algorithm draws: each neighbour as often, and each pair."""
    graph = graph_of([(0, i) for i in range(1, 81)], 81)
    sampler, draws, wanted = NeighborSampler(graph, [60]), 3000, 60
    taken = np.zeros((draws, 81))
    for seed in range(draws):
        batch = sampler.sample(np.array([0]), seed)
        taken[seed, batch.nodes.numpy()[1:]] = 1
    assert (taken.sum(axis=1) == wanted).all()
    shares, pairs = taken[:, 1:].mean(axis=0), (taken[:, 1:].T @ taken[:, 1:]) / draws
    expected, expected_pair = wanted / 80, wanted * (wanted - 1) / (80 * 79)
    assert np.abs(shares - expected).max() < 5 * math.sqrt(expected * (1 - expected) / draws)
    np.fill_diagonal(pairs, expected_pair)
    assert np.abs(pairs - expected_pair).max() < 6 * math.sqrt(expected_pair * (1 - expected_pair) / draws)


@pytest.mark.parametrize("method", ["neighbor", "labor"])
def test_a_draw_depends_on_nothing_else_in_the_batch(method: str) -> None:
    sampler = NeighborSampler(GRAPH, [3], method)
    for seed in range(20):
        alone = sampler.sample(np.array([7]), seed)
        among = sampler.sample(np.array([50, 7, 3]), seed)
        assert block_rows(alone.blocks[0], alone)[0] == block_rows(among.blocks[0], among)[1]


def test_neighbours_of_two_nodes_and_two_layers_are_drawn_independently() -> None:
    """Two leaves of the same hubs: how often both take the same one."""
    hubs = 10
    graph = graph_of([(leaf, 2 + hub) for leaf in (0, 1) for hub in range(hubs)], 2 + hubs)
    sampler, draws, same_hub = NeighborSampler(graph, [1]), 3000, 0
    for seed in range(draws):
        batch = sampler.sample(np.array([0, 1]), seed)
        first, second = block_rows(batch.blocks[0], batch)
        same_hub += first == second
    assert abs(same_hub / draws - 1 / hubs) < 5 * math.sqrt(0.09 / draws)


@pytest.mark.parametrize("method", ["neighbor", "labor"])
def test_types_of_index_and_mapped_files_draw_the_same(method: str, tmp_path: Path) -> None:
    small = Topology(GRAPH.indptr.astype(np.int32), GRAPH.indices.astype(np.int32))
    large = Topology(GRAPH.indptr.astype(np.int64), GRAPH.indices.astype(np.int64))
    np.save(tmp_path / "indptr.npy", small.indptr)
    np.save(tmp_path / "indices.npy", small.indices)
    mapped = Topology(*(np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in ("indptr", "indices")))
    samples = [NeighborSampler(each, [3, 0.5], method).sample(SEEDS, 5) for each in (small, large, mapped)]
    assert [sample.nodes.dtype for sample in samples] == [torch.int32, torch.int64, torch.int32]
    for sample in samples[1:]:
        assert torch.equal(sample.nodes.long(), samples[0].nodes.long())
        for one, other in zip(sample.blocks, samples[0].blocks, strict=True):
            assert torch.equal(one.indptr, other.indptr)
            assert torch.equal(one.indices, other.indices)


def test_the_draws_of_one_batch_as_they_have_always_been() -> None:
    """Recorded once: the same on every host, Python and processor."""
    star = graph_of([(0, i) for i in range(1, 21)], 21)
    drawn = {method: NeighborSampler(star, [4], method).sample(np.array([0]), 3) for method in ("neighbor", "labor")}
    found = {method: batch.nodes.tolist() for method, batch in drawn.items()}
    assert found == {"neighbor": [0, 14, 15, 18, 2], "labor": [0, 4, 18, 19, 20]}
