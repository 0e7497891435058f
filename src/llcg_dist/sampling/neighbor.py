"""Seeds -> Sample: one rectangular CSR block (sampling/block.py) per message-passing layer, sampled by DGL or by us."""

import math
import os
from collections.abc import Sequence

import dgl
import numpy as np
import torch
from torch import Tensor

from llcg_dist.data.csr import Topology
from llcg_dist.data.graph import Graph
from llcg_dist.data.rows import Array
from llcg_dist.sampling.block import Block, degrees
from llcg_dist.sampling.minibatch import Fanout, Sample


class NeighborSampler:
    """Samples `fanouts[l]` neighbours per node for layer l, uniformly and without replacement.

    `neighbor` draws for every node alone. `labor` (Balin & Catalyurek, 2023) draws one number for every neighbour that
    all nodes of a layer share, so that they mostly agree on whom to read: as many neighbours for each node, and far
    fewer rows in all. Of a node's neighbours those with the smallest numbers are taken, exactly `fanouts[l]`; DGL's own
    LABOR takes all below fanout/degree, so many on average, and learns worse (docs/performance.md).
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

    def sample(self, seeds: Array, seed: int) -> Sample:
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
        return Sample(nodes, outputs, blocks)

    def _sampled(self, nodes: Tensor, fanout: Fanout, seed: tuple[int, int]) -> dgl.DGLGraph:
        """The sampled edges that lead to `nodes`, in a graph of their ends alone: `nodes` first."""
        if isinstance(fanout, float) or (self._method == "labor" and fanout != -1):
            edges = self._smallest(nodes.numpy(), fanout, np.random.default_rng(np.random.SeedSequence(seed)))
            return dgl.to_block(dgl.graph(edges, num_nodes=self._topology.num_nodes()), nodes)
        # Draws the same edges as sample_neighbors. Left to make its own array for the new numbers, DGL takes one of
        # int64 for int32 graphs too, and mixes up the nodes of every block after the first.
        numbers = {f"__mapping{os.getpid()}": [self._numbers]}
        return dgl.sampling.sample_neighbors_fused(self._topology, nodes, fanout, copy_edata=False, mapping=numbers)

    def _smallest(self, nodes: Array, fanout: Fanout, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
        """Edges (from, to): of each node's neighbours the `fanout` that drew the smallest numbers.

        Nodes of the same degree are done together, as one matrix with a row for each.
        """
        shared = rng.random(self._topology.num_nodes(), np.float32) if self._method == "labor" else None
        start = self._indptr[nodes]
        degree = self._indptr[nodes + 1] - start
        order = np.argsort(degree, kind="stable")
        found, first = np.unique(degree[order], return_index=True)
        sources, targets = [], []
        for count, rows in zip(found.tolist(), np.split(order, first[1:]), strict=True):
            neighbours = self._indices[start[rows, None] + np.arange(count, dtype=start.dtype)]
            wanted = math.ceil(fanout * count) if isinstance(fanout, float) else min(fanout, count)
            if wanted < count:
                numbers = rng.random(neighbours.shape, np.float32) if shared is None else shared[neighbours]
                chosen = np.argpartition(numbers, wanted - 1, axis=1)[:, :wanted]
                neighbours = np.take_along_axis(neighbours, chosen, axis=1)
            sources.append(neighbours.ravel())
            targets.append(np.repeat(nodes[rows], wanted))
        return torch.from_numpy(np.concatenate(sources)), torch.from_numpy(np.concatenate(targets))
