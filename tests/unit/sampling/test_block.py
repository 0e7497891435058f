"""Blocks: the matrices that layers multiply with, and blocks of some rows of a graph."""

import numpy as np
import pytest
import torch

from llcg_dist.data.graph import Graph
from llcg_dist.sampling.block import block_with_local_columns, degrees, full_graph_block
from llcg_dist.sampling.minibatch import Sample
from llcg_dist.sampling.neighbor import NeighborSampler
from llcg_dist.sampling.sparse_matrix import SparseMatrix
from tests.helpers.graphs import community_graph, dense, dense_gcn, graph_of, hub_graph
from tests.helpers.models import adjacency

GRAPH = community_graph(60)

# A path, a triangle on it and a node alone.
LITTLE = graph_of([(0, 1), (1, 2), (2, 3), (1, 3)], 5)


def in_columns_of_the_graph(matrix: SparseMatrix, batch: Sample, num_nodes: int) -> np.ndarray:
    spread = np.zeros((matrix.shape[0], num_nodes))
    spread[:, batch.nodes.numpy()] = matrix.to_dense().double().numpy()
    return spread


@pytest.mark.parametrize("norm", ["symmetric", "row"])
def test_gcn_by_hand(norm: str) -> None:
    """Degrees with the self-loop: 2, 4, 3, 3, 1."""
    matrix = full_graph_block(LITTLE).gcn_adjacency(norm).to_dense()
    expected = {"row": [1 / 4, 1 / 4, 1 / 4, 1 / 4, 0], "symmetric": [8**-0.5, 1 / 4, 12**-0.5, 12**-0.5, 0]}
    assert matrix[1].tolist() == pytest.approx(expected[norm])
    assert matrix[4].tolist() == [0, 0, 0, 0, 1]


@pytest.mark.parametrize("norm", ["symmetric", "row"])
@pytest.mark.parametrize("graph", [GRAPH, LITTLE], ids=["communities", "little"])
def test_gcn_with_all_neighbours_is_the_dense_matrix(graph: Graph, norm: str) -> None:
    expected = dense_gcn(graph, norm)
    full = full_graph_block(graph).gcn_adjacency(norm).to_dense().numpy()
    np.testing.assert_allclose(full, expected, rtol=1e-5, atol=1e-7)
    seeds = np.arange(graph.num_nodes)[::-2].copy()
    batch = NeighborSampler(graph, [-1]).sample(seeds, 1)
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
    block = full_graph_block(LITTLE)
    assert (block.num_src, block.num_dst) == (5, 5)
    ones = dense(LITTLE)
    expected = ones / ones.sum(axis=1, keepdims=True).clip(min=1)
    assert block.mean_adjacency.to_dense().tolist() == expected.astype(np.float32).tolist()


def test_a_block_of_rows_is_those_rows_of_the_full_graph() -> None:
    graph = hub_graph()
    wanted = torch.arange(20) % 3 != 0
    columns, block = block_with_local_columns(graph, degrees(graph), 10, 30, wanted)
    rows = torch.arange(10, 30)[wanted]
    assert torch.equal(columns[: block.num_dst].long(), rows)
    found = torch.zeros(block.num_dst, graph.num_nodes)
    found[:, columns.long()] = block.mean_adjacency.to_dense()
    ones = adjacency(graph)
    mean = ones[rows] * ones[rows].sum(dim=1, keepdim=True).clamp(min=1).reciprocal()
    assert torch.equal(found, mean)
    assert torch.equal(block.degree, ones.sum(dim=1)[columns.long()])
