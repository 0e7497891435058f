"""Neighbour sampling with DGL, and LABOR and fractional fan-outs in NumPy: seeds -> Sample with one block per layer."""

import math
import os
from collections.abc import Sequence

import dgl
import numpy as np
import torch
from torch import Tensor

from llcg_dist.config.train import Fanout
from llcg_dist.data.csr import Topology
from llcg_dist.data.graph import Graph
from llcg_dist.data.rows import Array
from llcg_dist.sampling.block import Block, degrees
from llcg_dist.sampling.minibatch import Sample


class NeighborSampler:
    """Samples `fanouts[l]` neighbours per node for layer l, uniformly and without replacement.

    `neighbor` samples for every node independently. `labor` (Balin & Catalyurek, 2023) draws one random number per
    source node, shared by all destination nodes of a layer, so that these mostly choose the same neighbours: as many
    neighbours per node, and far fewer distinct rows. Of a node's neighbours those with the smallest numbers are taken,
    exactly `fanouts[l]`; DGL's own LABOR takes all below fanout/degree, which is `fanouts[l]` on average only, and
    reaches lower accuracy (docs/performance.md).
    """

    def __init__(self, topology: Graph | Topology, fanouts: Sequence[Fanout], method: str = "neighbor") -> None:
        self._method, self._degree = method, degrees(topology)
        # DGL allocates memory for the full fan-out of every node, and aborts if there is not enough.
        largest = max(1, int(self._degree.max()))
        self._fanouts = [min(fanout, largest) for fanout in fanouts]
        self._indptr, self._indices = topology.indptr, topology.indices
        indptr, indices = torch.from_numpy(topology.indptr), torch.from_numpy(topology.indices)
        # From CSC arrays (for an undirected graph CSC = CSR) DGL's graph shares the memory-mapped file without a copy.
        no_ids = torch.empty(0, dtype=indptr.dtype)
        self._topology = dgl.graph(("csc", (indptr, indices, no_ids)), num_nodes=topology.num_nodes)
        self._mapping = torch.full((topology.num_nodes,), -1, dtype=indptr.dtype)

    def sample(self, seeds: Array, seed: int) -> Sample:
        """Deterministic for (seeds, seed): DGL's generator of the calling thread is seeded for every batch."""
        dgl.seed(seed)
        outputs = torch.from_numpy(seeds).to(self._topology.idtype)
        nodes = outputs
        blocks: list[Block] = []
        for layer, fanout in enumerate(reversed(self._fanouts)):
            sampled = self._sample_layer(nodes, fanout, (seed, layer))
            indptr, indices, _ = sampled.adj_tensors("csc")
            num_dst, nodes = len(nodes), sampled.srcdata[dgl.NID]
            blocks.insert(0, Block(indptr, indices, len(nodes), num_dst, self._degree.index_select(0, nodes)))
        return Sample(nodes, outputs, blocks)

    def _sample_layer(self, nodes: Tensor, fanout: Fanout, seed: tuple[int, int]) -> dgl.DGLGraph:
        """Sampled edges into `nodes` as a bipartite graph; its source nodes are `nodes` followed by the others."""
        if isinstance(fanout, float) or (self._method == "labor" and fanout != -1):
            edges = self._smallest_numbers(nodes.numpy(), fanout, np.random.default_rng(np.random.SeedSequence(seed)))
            return dgl.to_block(dgl.graph(edges, num_nodes=self._topology.num_nodes()), nodes)
        # Draws the same edges as sample_neighbors. Without this array for the renumbering of nodes, DGL would allocate
        # one of int64 for int32 graphs too, and return wrong nodes for every block after the first.
        mapping = {f"__mapping{os.getpid()}": [self._mapping]}
        return dgl.sampling.sample_neighbors_fused(self._topology, nodes, fanout, copy_edata=False, mapping=mapping)

    def _smallest_numbers(self, nodes: Array, fanout: Fanout, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
        """Edges (source, destination): of each node's neighbours the `fanout` with the smallest random numbers.

        Nodes of equal degree are processed together, as a matrix with one row per node.
        """
        shared = rng.random(self._topology.num_nodes(), np.float32) if self._method == "labor" else None
        start = self._indptr[nodes]
        degree = self._indptr[nodes + 1] - start
        order = np.argsort(degree, kind="stable")
        distinct, first = np.unique(degree[order], return_index=True)
        src, dst = [], []
        for count, rows in zip(distinct.tolist(), np.split(order, first[1:]), strict=True):
            neighbours = self._indices[start[rows, None] + np.arange(count, dtype=start.dtype)]
            wanted = math.ceil(fanout * count) if isinstance(fanout, float) else min(fanout, count)
            if wanted < count:
                numbers = rng.random(neighbours.shape, np.float32) if shared is None else shared[neighbours]
                chosen = np.argpartition(numbers, wanted - 1, axis=1)[:, :wanted]
                neighbours = np.take_along_axis(neighbours, chosen, axis=1)
            src.append(neighbours.ravel())
            dst.append(np.repeat(nodes[rows], wanted))
        return torch.from_numpy(np.concatenate(src)), torch.from_numpy(np.concatenate(dst))
