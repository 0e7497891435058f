"""DGL's fused neighbour sampler behind our interface, as llcg_dist used it before it had kernels of its own."""

import os
from collections.abc import Sequence

import dgl
import torch

from llcg_dist.data.csr import Topology
from llcg_dist.data.rows import Array
from llcg_dist.sampling.block import Block, degrees
from llcg_dist.sampling.minibatch import Sample


class DglNeighborSampler:
    """Samples `fanouts[l]` neighbours per node for layer l, uniformly and without replacement."""

    def __init__(self, topology: Topology, fanouts: Sequence[int]) -> None:
        self._fanouts, self._degree = list(fanouts), degrees(topology)
        indptr, indices = torch.from_numpy(topology.indptr), torch.from_numpy(topology.indices)
        no_ids = torch.empty(0, dtype=indptr.dtype)
        self._topology = dgl.graph(("csc", (indptr, indices, no_ids)), num_nodes=topology.num_nodes)
        self._mapping = torch.full((topology.num_nodes,), -1, dtype=indptr.dtype)

    def sample(self, seeds: Array, seed: int) -> Sample:
        dgl.seed(seed)
        outputs = torch.from_numpy(seeds).to(self._topology.idtype)
        nodes, blocks = outputs, list[Block]()
        # Without an array for the renumbering of nodes, DGL would allocate one of int64 for int32 graphs too, and
        # return wrong nodes for every block after the first.
        mapping = {f"__mapping{os.getpid()}": [self._mapping]}
        for fanout in reversed(self._fanouts):
            sampled = dgl.sampling.sample_neighbors_fused(
                self._topology, nodes, fanout, copy_edata=False, mapping=mapping
            )
            indptr, indices, _ = sampled.adj_tensors("csc")
            num_dst, nodes = len(nodes), sampled.srcdata[dgl.NID]
            blocks.insert(0, Block(indptr, indices, len(nodes), num_dst, self._degree.index_select(0, nodes)))
        return Sample(nodes, outputs, blocks)
