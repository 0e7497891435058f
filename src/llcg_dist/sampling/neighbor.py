"""Neighbour sampling: seeds -> Sample with one block per layer, drawn by compiled kernels."""

from collections.abc import Sequence

import numpy as np
import torch

from llcg_dist.config.train import Fanout, SamplingMethod
from llcg_dist.data.csr import Topology
from llcg_dist.data.graph import Graph
from llcg_dist.data.rows import Array, frozen
from llcg_dist.sampling.block import Block, Subgraph, degrees
from llcg_dist.sampling.compiled import kernels
from llcg_dist.sampling.minibatch import Sample


class NeighborSampler:
    """Samples `fanouts[l]` neighbours per node for layer l, uniformly and without replacement.

    `neighbor` samples for every node independently. `labor` (Balin & Catalyurek, 2023) draws one random number per
    source node, shared by all destination nodes of a layer, so that these mostly choose the same neighbours: as many
    neighbours per node, and far fewer distinct rows. Of a node's neighbours those with the smallest numbers are taken,
    exactly `fanouts[l]`; DGL's LABOR takes all below fanout/degree, which is `fanouts[l]` on average only, and
    reaches lower accuracy (docs/studies/performance.md).
    """

    def __init__(
        self, topology: Graph | Topology, fanouts: Sequence[Fanout], method: str = SamplingMethod.neighbor
    ) -> None:
        self._kernels, self._labor = kernels(), method == SamplingMethod.labor
        self._fanouts, self._degree = list(fanouts), degrees(topology)
        self._indptr, self._indices = frozen(topology.indptr), frozen(topology.indices)
        self._place = np.full(topology.num_nodes, -1, np.int32)
        """[N]: where a node stands among the nodes of the batch that is drawn; -1 between two batches."""

    def sample(self, seeds: Array, seed: int) -> Sample:
        """Deterministic for (seeds, seed). Not for two threads at once."""
        outputs = nodes = np.ascontiguousarray(seeds, dtype=self._indices.dtype)
        self._kernels.set_places(nodes, self._place, 0)
        blocks: list[Block] = []
        for layer, fanout in enumerate(reversed(self._fanouts)):
            num_dst = len(nodes)
            indptr, indices, nodes = self._sample_layer(nodes, fanout, seed, layer)
            degree = self._degree.index_select(0, torch.from_numpy(nodes))
            block = Block(torch.from_numpy(indptr), torch.from_numpy(indices), len(nodes), num_dst, degree)
            blocks.insert(0, block)
        self._kernels.set_places(nodes, self._place, -1)
        return Sample(torch.from_numpy(nodes), torch.from_numpy(outputs), blocks)

    def _sample_layer(
        self, nodes: Array, fanout: Fanout, seed: int, layer: int, first: int = 0
    ) -> tuple[Array, Array, Array]:
        """(indptr, indices, nodes) of the sampled neighbours of nodes[first:]."""
        share = fanout if isinstance(fanout, float) else 0.0
        count = -1 if isinstance(fanout, float) else min(fanout, np.iinfo(np.int32).max)
        drawn: tuple[Array, Array, Array] = self._kernels.sample_layer(
            self._indptr, self._indices, nodes, first, self._place, count, share, self._labor, seed, layer
        )
        return drawn


class SubgraphSampler(NeighborSampler):
    """Samples a subgraph in place of blocks, for models that read an edge_index: every node's neighbours once, when it
    is first reached. `fanouts[-1]` neighbours of the seeds, `fanouts[-2]` of those, and so on."""

    def sample(self, seeds: Array, seed: int) -> Sample:
        """One block: the seeds come first among its nodes, and its rows are all nodes but those reached last."""
        outputs = nodes = np.ascontiguousarray(seeds, dtype=self._indices.dtype)
        self._kernels.set_places(nodes, self._place, 0)
        ends, indices, first, num_edges = [np.zeros(1, np.int32)], [np.zeros(0, np.int32)], 0, 0
        per_hop = [len(nodes)]
        for hop, fanout in enumerate(reversed(self._fanouts)):
            num_before = len(nodes)
            hop_indptr, hop_indices, nodes = self._sample_layer(nodes, fanout, seed, hop, first)
            ends.append(hop_indptr[1:] + num_edges)
            indices.append(hop_indices)
            first, num_edges = num_before, num_edges + len(hop_indices)
            per_hop.append(len(nodes) - num_before)
        self._kernels.set_places(nodes, self._place, -1)
        all_nodes, indptr = torch.from_numpy(nodes), torch.from_numpy(np.concatenate(ends))
        degree = self._degree.index_select(0, all_nodes)
        edges = torch.from_numpy(np.concatenate(indices))
        block = Subgraph(indptr, edges, len(nodes), first, degree, None, len(outputs), tuple(per_hop))
        return Sample(all_nodes, torch.from_numpy(outputs), [block])
