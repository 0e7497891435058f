"""Seeds -> Batch: one rectangular CSR block per message-passing layer, sampled by DGL.

A block of a layer has a row for every node the layer computes and a column for every node it reads. The computed nodes
are the first of the read ones, as PyG's bipartite layers expect: `layer((x, x[:num_dst]), A)`.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import dgl
import torch
from torch import Tensor

from llcg_dist.data.graph import Array, Graph

warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")
# Store arrays are mapped read-only on purpose: nothing here writes to them.
warnings.filterwarnings("ignore", message="The given NumPy array is not writable")


@dataclass(frozen=True)
class Block:
    """The neighbours one layer reads: row i's are indices[indptr[i]:indptr[i+1]].

    degree [num_src] is each node's number of neighbours in the graph the sampler sees, sampled here or not.
    """

    indptr: Tensor
    indices: Tensor
    num_src: int
    num_dst: int
    degree: Tensor

    @cached_property
    def adjacency(self) -> Tensor:
        """[num_dst, num_src] CSR of ones, for a mean over the neighbours (without the node itself)."""
        return self._csr(self.indptr, self.indices, torch.ones(len(self.indices)))

    def gcn_adjacency(self, norm: str) -> Tensor:
        """[num_dst, num_src] CSR of D^-1/2 (A+I) D^-1/2 (symmetric) or D^-1 (A+I) (row), D from the graph's degrees.

        Of s sampled neighbours out of d, each stands for d/s: the sum keeps its expectation, and with all neighbours
        taken the block equals the rows of the full matrix. So sampling, correction and evaluation share one formula.
        """
        sampled = self.indptr.diff()
        row = torch.repeat_interleave(torch.arange(self.num_dst), sampled)
        self_loop = self.indptr[:-1] + torch.arange(self.num_dst, dtype=self.indptr.dtype)
        neighbour = torch.arange(len(row)) + row + 1
        indices = torch.empty(len(row) + self.num_dst, dtype=self.indices.dtype)
        indices[self_loop.long()] = torch.arange(self.num_dst, dtype=self.indices.dtype)
        indices[neighbour] = self.indices
        full = self.degree + 1
        inverse = full.rsqrt() if norm == "symmetric" else full.reciprocal()
        left = inverse[: self.num_dst]
        right = inverse if norm == "symmetric" else torch.ones_like(inverse)
        stands_for = self.degree[: self.num_dst] / sampled.clamp(min=1)
        values = torch.empty(len(indices))
        values[self_loop.long()] = left * right[: self.num_dst]
        values[neighbour] = (left * stands_for)[row] * right[self.indices.long()]
        indptr = self.indptr + torch.arange(self.num_dst + 1, dtype=self.indptr.dtype)
        return self._csr(indptr, indices, values)

    def _csr(self, indptr: Tensor, indices: Tensor, values: Tensor) -> Tensor:
        size = (self.num_dst, self.num_src)
        return torch.sparse_csr_tensor(indptr, indices, values, size=size, check_invariants=False)


@dataclass(frozen=True)
class Batch:
    """What a model needs to compute `outputs`: the rows of features to read, a block per layer, input side first."""

    inputs: Tensor
    outputs: Tensor
    blocks: Sequence[Block]


class NeighborSampler:
    """Samples `fanouts[l]` neighbours per node for layer l (-1: all), without replacement."""

    def __init__(self, graph: Graph, fanouts: Sequence[int]) -> None:
        self._fanouts = list(fanouts)
        self._degree = degrees(graph)
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


def degrees(graph: Graph) -> Tensor:
    return torch.from_numpy(graph.indptr).diff().float()


def whole_graph(graph: Graph) -> Block:
    """The block of a layer that computes every node from all its neighbours."""
    indptr, indices = torch.from_numpy(graph.indptr), torch.from_numpy(graph.indices)
    return Block(indptr, indices, graph.num_nodes, graph.num_nodes, degrees(graph))


def fanouts_per_layer(fanout: int | list[int], depth: int) -> list[int]:
    """One number serves every layer; a list has one per layer."""
    return [fanout] * depth if isinstance(fanout, int) else list(fanout)
