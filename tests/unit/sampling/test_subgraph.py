"""Sampled subgraphs: every node's neighbours once, when it is first reached."""

import numpy as np
import pytest
import torch

from llcg_dist.sampling.block import Subgraph
from llcg_dist.sampling.neighbor import NeighborSampler, SubgraphSampler
from tests.helpers.graphs import graph_of, random_graph, rows_of

GRAPH = random_graph(200, 800, seed=0)
NEIGHBOURS = [set(row) for row in rows_of(GRAPH.indptr, GRAPH.indices)]
SEEDS = np.array([17, 3, 80])


def sampled(fanouts: list[int], seed: int = 1, method: str = "neighbor") -> tuple[list[int], Subgraph]:
    sample = SubgraphSampler(GRAPH, fanouts, method).sample(SEEDS, seed)
    (block,) = sample.blocks
    assert isinstance(block, Subgraph)
    return sample.nodes.tolist(), block


@pytest.mark.parametrize("method", ["neighbor", "labor"])
def test_each_node_has_its_fanout_of_neighbours_once(method: str) -> None:
    nodes, block = sampled([2, 3], method=method)
    assert nodes[:3] == SEEDS.tolist()
    assert len(nodes) == len(set(nodes)) == block.num_src
    assert block.num_outputs == 3
    rows = rows_of(block.indptr.numpy(), block.indices.numpy())
    for place, row in enumerate(rows):
        drawn = {nodes[column] for column in row}
        assert drawn <= NEIGHBOURS[nodes[place]]
        assert len(drawn) == len(row) == min(3 if place < 3 else 2, len(NEIGHBOURS[nodes[place]]))
    reached = set(range(3)) | {column for row in rows[:3] for column in row}
    assert set(range(block.num_dst)) == reached  # the seeds, and what they reach in one hop
    assert set(range(len(nodes))) == reached | {column for row in rows for column in row}


def test_seeds_draw_what_they_draw_for_blocks() -> None:
    """The generator is keyed by layer and node, so the first hop is the last layer's block."""
    nodes, block = sampled([2, 3])
    blocks = NeighborSampler(GRAPH, [2, 3]).sample(SEEDS, 1)
    last = blocks.blocks[-1]
    assert torch.equal(block.indptr[:4], last.indptr)
    assert [nodes[i] for i in block.indices[: last.indptr[-1]]] == [blocks.nodes[i] for i in last.indices]


def test_all_neighbours_of_two_hops() -> None:
    nodes, block = sampled([-1, -1])
    one_hop = set(SEEDS.tolist()).union(*(NEIGHBOURS[node] for node in SEEDS))
    assert {nodes[row] for row in range(block.num_dst)} == one_hop
    assert set(nodes) == one_hop.union(*(NEIGHBOURS[node] for node in one_hop))
    edges = {(nodes[src], nodes[dst]) for src, dst in block.edge_index.T.tolist()}
    assert edges == {(src, dst) for dst in one_hop for src in NEIGHBOURS[dst]}
    assert block.degree.tolist() == [len(NEIGHBOURS[node]) for node in nodes]


def test_no_hop_is_the_seeds_alone() -> None:
    nodes, block = sampled([])
    assert nodes == SEEDS.tolist()
    assert block.edge_index.shape == (2, 0)


def test_a_hop_that_reaches_nothing_new() -> None:
    graph = graph_of([(0, 1)], 3)
    sample = SubgraphSampler(graph, [-1] * 4).sample(np.array([0, 2]), 0)
    assert sample.nodes.tolist() == [0, 2, 1]
    (block,) = sample.blocks
    assert isinstance(block, Subgraph)
    assert block.edge_index.T.tolist() == [[2, 0], [0, 2]]
    assert block.num_dst == len(block.indptr) - 1 == 3


def test_the_sampler_is_clean_after_a_batch() -> None:
    sampler = SubgraphSampler(GRAPH, [3, 3])
    first = sampler.sample(SEEDS, 5)
    sampler.sample(np.array([9, 10]), 6)
    again = sampler.sample(SEEDS, 5)
    assert torch.equal(first.nodes, again.nodes)
    assert torch.equal(first.blocks[0].indices, again.blocks[0].indices)


def test_hops_beyond_the_last_node_add_nothing() -> None:
    """All nodes are reached, or the seeds have no neighbours, before the hops are used up."""
    for graph in (random_graph(6, 12, seed=0), random_graph(6, 0, seed=0)):
        few, many = (SubgraphSampler(graph, [-1] * hops).sample(np.array([4, 1]), 0) for hops in (6, 9))
        assert torch.equal(few.nodes, many.nodes)
        assert torch.equal(few.blocks[0].indptr, many.blocks[0].indptr)
        assert torch.equal(few.blocks[0].indices, many.blocks[0].indices)
        assert few.blocks[0].num_dst == len(few.nodes)


@pytest.mark.parametrize("fanouts", [[2, 3], [-1], [2, 2, 2, 2, 2, 2]])
def test_nodes_and_edges_of_every_hop_in_order(fanouts: list[int]) -> None:
    nodes, block = sampled(fanouts)
    sizes, edges = (block.hops[f"num_sampled_{what}_per_hop"] for what in ("nodes", "edges"))
    assert sizes[0] == len(SEEDS)
    assert sum(sizes) == len(nodes)
    assert len(sizes) == len(fanouts) + 1
    ends = np.cumsum(sizes)
    hop_of_row = np.searchsorted(ends, np.arange(block.num_dst), side="right")
    of_rows = np.diff(block.indptr.numpy())
    assert edges == [int(of_rows[hop_of_row == hop].sum()) for hop in range(len(fanouts))]
    within = block.within_parts(torch.zeros(len(nodes)), block.degree)
    assert isinstance(within, Subgraph)
    assert within.hops == block.hops
    apart = block.within_parts(torch.arange(len(nodes)), block.degree)
    assert isinstance(apart, Subgraph)
    assert apart.hops["num_sampled_edges_per_hop"] == [0] * len(fanouts)
