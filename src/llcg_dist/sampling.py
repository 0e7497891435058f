"""Seeds -> Batch: one rectangular CSR block (blocks.py) per message-passing layer, sampled by DGL."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

import dgl
import numpy as np
import torch
from torch import Tensor

from llcg_dist.blocks import Block, degrees
from llcg_dist.data.graph import Array, Graph, Topology, row_positions

Fanout = int | float
"""-1: all neighbours; a whole number: so many of each node's; a number in (0, 1): that share of each node's."""


@dataclass(frozen=True)
class Batch:
    """What a model needs to compute `outputs`: the rows of features to read, a block per layer, input side first."""

    inputs: Tensor
    outputs: Tensor
    blocks: Sequence[Block]


class NeighborSampler:
    """Samples `fanouts[l]` neighbours per node for layer l, uniformly and without replacement.

    `neighbor` draws for every node alone. `labor` (Balin & Catalyurek, 2023) draws one number for every neighbour that
    all nodes of a layer share, so that they mostly agree on whom to read: about as many neighbours for each node, the
    number itself being random, and far fewer rows in all.
    """

    def __init__(self, topology: Graph | Topology, fanouts: Sequence[Fanout], method: str = "neighbor") -> None:
        self._method, self._degree = method, degrees(topology)
        # DGL reserves memory for all that a fan-out could take, and aborts where there is not enough.
        largest = max(1, int(self._degree.max()))
        self._fanouts = [min(fanout, largest) for fanout in fanouts]
        self._indptr, self._indices = topology.indptr, topology.indices
        indptr, indices = torch.from_numpy(topology.indptr), torch.from_numpy(topology.indices)
        # Built from CSC arrays (for an undirected graph CSC = CSR) the topology shares the mapped file, without a copy.
        no_ids = torch.empty(0, dtype=indptr.dtype)
        self._topology = dgl.graph(("csc", (indptr, indices, no_ids)), num_nodes=topology.num_nodes)
        self._numbers = torch.full((topology.num_nodes,), -1, dtype=indptr.dtype)

    def sample(self, seeds: Array, seed: int) -> Batch:
        """The same bits for the same seeds and seed: DGL is seeded anew for every batch, in the calling thread."""
        dgl.seed(seed)
        outputs = torch.from_numpy(seeds).to(self._topology.idtype)
        nodes = outputs
        blocks: list[Block] = []
        for layer, fanout in enumerate(reversed(self._fanouts)):
            sampled = self._sampled(nodes, fanout, (seed, layer))
            indptr, indices, _ = sampled.adj_tensors("csc")
            num_dst, nodes = len(nodes), sampled.srcdata[dgl.NID]
            blocks.insert(0, Block(indptr, indices, len(nodes), num_dst, self._degree.index_select(0, nodes)))
        return Batch(nodes, outputs, blocks)

    def _sampled(self, nodes: Tensor, fanout: Fanout, seed: tuple[int, int]) -> dgl.DGLGraph:
        """The sampled edges that lead to `nodes`, in a graph of their ends alone: `nodes` first."""
        if isinstance(fanout, float) or (self._method == "labor" and fanout != -1):
            return dgl.to_block(self._frontier(nodes, fanout, seed), nodes)
        # Draws the same edges as sample_neighbors. Left to make its own array for the new numbers, DGL takes one of
        # int64 for int32 graphs too, and mixes up the nodes of every block after the first.
        numbers = {f"__mapping{os.getpid()}": [self._numbers]}
        return dgl.sampling.sample_neighbors_fused(self._topology, nodes, fanout, copy_edata=False, mapping=numbers)

    def _frontier(self, nodes: Tensor, fanout: Fanout, seed: tuple[int, int]) -> dgl.DGLGraph:
        """The sampled edges that lead to `nodes`, in the whole graph's numbers."""
        if isinstance(fanout, float):
            return self._share(nodes.numpy(), fanout, np.random.default_rng(np.random.SeedSequence(seed)))
        number = torch.tensor([seed[0] * len(self._fanouts) + seed[1]])  # DGL's own seed does not reach LABOR
        seed_of_layer = dgl.backend.zerocopy_to_dgl_ndarray(number)
        return dgl.sampling.sample_labors(self._topology, nodes, fanout, random_seed=seed_of_layer)[0]

    def _share(self, nodes: Array, share: float, rng: np.random.Generator) -> dgl.DGLGraph:
        """ceil(share · degree) of each node's neighbours: those that drew the smallest numbers."""
        positions, ends = row_positions(self._indptr, nodes)
        counts = np.diff(ends, prepend=0)
        row = np.repeat(np.arange(len(nodes)), counts)
        order = np.lexsort((rng.random(len(positions)), row))
        place = np.arange(len(positions)) - np.repeat(ends - counts, counts)
        chosen = order[place < np.ceil(share * counts)[row]]
        edges = (torch.from_numpy(self._indices[positions[chosen]]), torch.from_numpy(nodes[row[chosen]]))
        return dgl.graph(edges, num_nodes=self._topology.num_nodes())


def fanouts_per_layer(fanout: Fanout | list[Fanout], depth: int) -> list[Fanout]:
    """One number serves every layer; a list has one per layer."""
    return list(fanout) if isinstance(fanout, list) else [fanout] * depth
