"""A small graph, mini-batches drawn from it, and their rows in ids of the graph."""

from collections.abc import Sequence

import numpy as np
import torch

from llcg_dist.config.train import Fanout
from llcg_dist.data.graph import Graph
from llcg_dist.sampling.block import Block
from llcg_dist.sampling.minibatch import Sample
from llcg_dist.sampling.neighbor import NeighborSampler
from tests.helpers.graphs import community_graph, rows_of

GRAPH = community_graph(60)
ROWS = rows_of(GRAPH.indptr, GRAPH.indices)
SEEDS = np.array([7, 3, 11, 50])


def block_rows(block: Block, batch: Sample) -> list[list[int]]:
    """Global ids; what a layer computes is the beginning of what it reads, in every block."""
    read = batch.nodes[: block.num_src].numpy()
    return rows_of(block.indptr.numpy(), read[block.indices.numpy()])


def sampled(fanouts: Sequence[Fanout], seed: int = 1, seeds: np.ndarray = SEEDS, graph: Graph = GRAPH) -> Sample:
    return NeighborSampler(graph, fanouts).sample(seeds, seed)


def same(one: Sample, other: Sample) -> bool:
    pairs = zip(one.blocks, other.blocks, strict=True)
    return torch.equal(one.nodes, other.nodes) and all(
        torch.equal(a.indptr, b.indptr) and torch.equal(a.indices, b.indices) for a, b in pairs
    )
