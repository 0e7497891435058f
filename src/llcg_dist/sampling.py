"""Seeds -> Batch: one rectangular CSR block (blocks.py) per message-passing layer, sampled by DGL."""

from collections.abc import Sequence
from dataclasses import dataclass

import dgl
import torch
from torch import Tensor

from llcg_dist.blocks import Block, degrees
from llcg_dist.data.graph import Array, Graph


@dataclass(frozen=True)
class Batch:
    """What a model needs to compute `outputs`: the rows of features to read, a block per layer, input side first."""

    inputs: Tensor
    outputs: Tensor
    blocks: Sequence[Block]


class NeighborSampler:
    """Samples `fanouts[l]` neighbours per node for layer l (-1: all), without replacement."""

    def __init__(self, graph: Graph, fanouts: Sequence[int]) -> None:
        self._degree = degrees(graph)
        # DGL reserves memory for all that a fan-out could take, and aborts where there is not enough.
        largest = max(1, int(self._degree.max()))
        self._fanouts = [min(fanout, largest) for fanout in fanouts]
        indptr, indices = torch.from_numpy(graph.indptr), torch.from_numpy(graph.indices)
        # Built from CSC arrays (for an undirected graph CSC = CSR) the topology shares the mapped file, without a copy.
        no_ids = torch.empty(0, dtype=indptr.dtype)
        self._topology = dgl.graph(("csc", (indptr, indices, no_ids)), num_nodes=graph.num_nodes)

    def sample(self, seeds: Array, seed: int) -> Batch:
        """The same bits for the same seeds and seed: DGL is seeded anew for every batch, in the calling thread."""
        dgl.seed(seed)
        outputs = torch.from_numpy(seeds).to(self._topology.idtype)
        nodes = outputs
        blocks: list[Block] = []
        for fanout in reversed(self._fanouts):
            frontier = dgl.sampling.sample_neighbors(self._topology, nodes, fanout)
            sampled = dgl.to_block(frontier, nodes)
            indptr, indices, _ = sampled.adj_tensors("csc")
            num_dst, nodes = len(nodes), sampled.srcdata[dgl.NID]
            blocks.insert(0, Block(indptr, indices, len(nodes), num_dst, self._degree[nodes]))
        return Batch(nodes, outputs, blocks)


def fanouts_per_layer(fanout: int | list[int], depth: int) -> list[int]:
    """One number serves every layer; a list has one per layer."""
    return [fanout] * depth if isinstance(fanout, int) else list(fanout)
