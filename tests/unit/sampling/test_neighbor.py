"""Blocks against the graph they come from."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from llcg_dist.data.graph import TRAIN, Graph
from llcg_dist.sampling.block import Block, whole_graph
from llcg_dist.sampling.minibatch import Sample, fanouts_per_layer
from llcg_dist.sampling.neighbor import NeighborSampler
from tests.helpers.graphs import community_graph, dense, dense_gcn, graph_of, rows_of

GRAPH = community_graph(60)
ROWS = rows_of(GRAPH.indptr, GRAPH.indices)
# A path, a triangle on it and a node alone.
LITTLE = graph_of([(0, 1), (1, 2), (2, 3), (1, 3)], 5)
SEEDS = np.array([7, 3, 11, 50])


def block_rows(block: Block, batch: Sample) -> list[list[int]]:
    """Global ids; what a layer computes is the beginning of what it reads, in every block."""
    read = batch.nodes[: block.num_src].numpy()
    return rows_of(block.indptr.numpy(), read[block.indices.numpy()])


def sampled(fanouts: list[int], seed: int = 1, seeds: np.ndarray = SEEDS, graph: Graph = GRAPH) -> Sample:
    return NeighborSampler(graph, fanouts).sample(seeds, seed)


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


def same(one: Sample, other: Sample) -> bool:
    pairs = zip(one.blocks, other.blocks, strict=True)
    return torch.equal(one.nodes, other.nodes) and all(
        torch.equal(a.indptr, b.indptr) and torch.equal(a.indices, b.indices) for a, b in pairs
    )


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


def in_columns_of_the_graph(matrix: Tensor, batch: Sample, num_nodes: int) -> np.ndarray:
    spread = np.zeros((matrix.shape[0], num_nodes))
    spread[:, batch.nodes.numpy()] = matrix.to_dense().double().numpy()
    return spread


@pytest.mark.parametrize("norm", ["symmetric", "row"])
def test_gcn_by_hand(norm: str) -> None:
    """Degrees with the self-loop: 2, 4, 3, 3, 1."""
    matrix = whole_graph(LITTLE).gcn_adjacency(norm).to_dense()
    expected = {"row": [1 / 4, 1 / 4, 1 / 4, 1 / 4, 0], "symmetric": [8**-0.5, 1 / 4, 12**-0.5, 12**-0.5, 0]}
    assert matrix[1].tolist() == pytest.approx(expected[norm])
    assert matrix[4].tolist() == [0, 0, 0, 0, 1]


@pytest.mark.parametrize("norm", ["symmetric", "row"])
@pytest.mark.parametrize("graph", [GRAPH, LITTLE], ids=["communities", "little"])
def test_gcn_with_all_neighbours_is_the_dense_matrix(graph: Graph, norm: str) -> None:
    expected = dense_gcn(graph, norm)
    whole = whole_graph(graph).gcn_adjacency(norm).to_dense().numpy()
    np.testing.assert_allclose(whole, expected, rtol=1e-5, atol=1e-7)
    seeds = np.arange(graph.num_nodes)[::-2].copy()
    batch = sampled([-1], seeds=seeds, graph=graph)
    rows = in_columns_of_the_graph(batch.blocks[0].gcn_adjacency(norm), batch, graph.num_nodes)
    np.testing.assert_allclose(rows, expected[seeds], rtol=1e-5, atol=1e-7)


def test_gcn_of_sampled_neighbours_is_right_on_average() -> None:
    """Of d neighbours s are drawn and stand for d/s each: mean v, variance v²·(d/s − 1) per entry."""
    draws, fanout, seeds = 600, 2, np.arange(12)
    sampler = NeighborSampler(GRAPH, [fanout])
    total = {norm: np.zeros((len(seeds), GRAPH.num_nodes)) for norm in ("symmetric", "row")}
    for seed in range(draws):
        batch = sampler.sample(seeds, seed)
        for norm in total:
            matrix = batch.blocks[0].gcn_adjacency(norm)
            total[norm] += in_columns_of_the_graph(matrix, batch, GRAPH.num_nodes)
    adjacency = dense(GRAPH)[seeds]
    degree = adjacency.sum(axis=1, keepdims=True)
    drawn = (adjacency > 0) & (degree > fanout)
    assert drawn.sum() > 40
    for norm in total:
        expected, found = dense_gcn(GRAPH, norm)[seeds], total[norm] / draws
        error = expected * np.sqrt((np.maximum(degree / fanout, 1) - 1) / draws)
        deviations = (found - expected)[drawn] / error[drawn]
        assert np.abs(deviations).max() < 4
        assert 0.7 < deviations.std() < 1.3  # standard errors, neither smaller nor larger
        np.testing.assert_allclose(found[~drawn], expected[~drawn], rtol=1e-4, atol=1e-7)


def test_adjacency_is_a_plain_mean_without_the_node_itself() -> None:
    block = whole_graph(LITTLE)
    assert (block.num_src, block.num_dst) == (5, 5)
    ones = dense(LITTLE)
    expected = ones / ones.sum(axis=1, keepdims=True).clip(min=1)
    assert block.mean_adjacency.to_dense().tolist() == expected.astype(np.float32).tolist()


def test_fanouts_per_layer() -> None:
    assert fanouts_per_layer(10, 3) == [10, 10, 10]
    assert fanouts_per_layer([10, 5], 2) == [10, 5]
    assert fanouts_per_layer(10, 0) == []


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


def labor(fanouts: list[int] | list[float], seed: int, seeds: np.ndarray) -> Sample:
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


def test_a_fanout_beyond_every_degree_takes_all_neighbours_and_no_more_memory() -> None:
    """DGL would reserve room for every neighbour it might take, and abort the process."""
    graph = community_graph()
    seeds = graph.nodes_in(TRAIN)
    everything = NeighborSampler(graph, [-1, -1]).sample(seeds, 0)
    for fanout in (graph.num_nodes, 2**31, 2**70):
        batch = NeighborSampler(graph, [fanout, fanout]).sample(seeds, 0)
        assert [block.num_src for block in batch.blocks] == [block.num_src for block in everything.blocks]
        assert [len(block.indices) for block in batch.blocks] == [len(block.indices) for block in everything.blocks]
