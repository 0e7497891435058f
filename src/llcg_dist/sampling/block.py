"""Blocks: what one message-passing layer reads, and how to cut one out of a graph. Plain tensors, no sampler.

A block has a row for every node the layer computes and a column for every node it reads. The computed nodes are the
first of the read ones, unless the block says where else: `layer((x, block.own(x)), A)`.
"""

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from llcg_dist.data.csr import Topology
from llcg_dist.data.feature_rows import Rows
from llcg_dist.data.graph import Graph

warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")
# Store arrays are mapped read-only on purpose: nothing here writes to them.
warnings.filterwarnings("ignore", message="The given NumPy array is not writable")


EDGES_PER_NODE = 8
"""A whole graph is computed in chunks of n nodes and at most 8n edges (or a single node): attention holds a message for
each of them."""


class _WithSelfLoops(NamedTuple):
    """A block's pattern with each computed node's own column put before its neighbours."""

    indptr: Tensor
    indices: Tensor
    self_loop: Tensor  # [num_dst] where the self-loops stand among the entries
    neighbour: Tensor  # [entries of the block] where the neighbours stand
    row: Tensor  # [entries of the block] the row of each neighbour


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
    dst: Tensor | None = None
    """[num_dst] where the computed nodes are among the read ones; None: they are the first."""

    def own(self, x: Rows) -> Tensor:
        """Of a value for every node that is read, those of the computed ones."""
        return x[: self.num_dst] if self.dst is None else x[self.dst]

    def to(self, device: str) -> "Block":
        if self.indptr.device.type == torch.device(device).type:
            return self
        indptr, indices, degree = (tensor.to(device) for tensor in (self.indptr, self.indices, self.degree))
        dst = None if self.dst is None else self.dst.to(device)
        return Block(indptr, indices, self.num_src, self.num_dst, degree, dst)

    def within_parts(self, part: Tensor, degree: Tensor) -> "Block":
        """The block without the edges between different parts; `part` [num_src], `degree` [num_src] without them."""
        row = torch.repeat_interleave(torch.arange(self.num_dst), self.indptr.diff())
        inside = part[row] == part[self.indices.long()]
        kept_before = torch.cat([torch.zeros(1, dtype=torch.int64), inside.cumsum(0)])
        indptr = kept_before[self.indptr.long()].to(self.indptr.dtype)
        return Block(indptr, self.indices[inside], self.num_src, self.num_dst, degree)

    @cached_property
    def mean_adjacency(self) -> Tensor:
        """[num_dst, num_src] CSR whose rows take the mean over the neighbours (without the node itself)."""
        count = self.indptr.diff()
        values = torch.repeat_interleave(count.float().reciprocal(), count)
        return self._csr(self.indptr, self.indices, values)

    @cached_property
    def attention_adjacency(self) -> Tensor:
        """[num_dst, num_src] CSR of ones over the neighbours and the node itself, for attention among them.

        Indices are int64: PyG's softmax over several heads takes no other.
        """
        pattern = self._with_self_loops
        return self._csr(
            pattern.indptr.long(), pattern.indices.long(), torch.ones(len(pattern.indices), device=self.degree.device)
        )

    def gcn_adjacency(self, norm: str) -> Tensor:
        """[num_dst, num_src] CSR of D^-1/2 (A+I) D^-1/2 (symmetric) or D^-1 (A+I) (row), D from the graph's degrees.

        Of s sampled neighbours out of d, each stands for d/s: the sum keeps its expectation, and with all neighbours
        taken the block equals the rows of the full matrix. So sampling, correction and evaluation share one formula.
        """
        pattern = self._with_self_loops
        full = self.degree + 1
        inverse = full.rsqrt() if norm == "symmetric" else full.reciprocal()
        left = self.own(inverse)
        right = inverse if norm == "symmetric" else torch.ones_like(inverse)
        stands_for = self.own(self.degree) / self.indptr.diff().clamp(min=1)
        values = torch.empty(len(pattern.indices), device=self.degree.device)
        values[pattern.self_loop] = left * self.own(right)
        values[pattern.neighbour] = (left * stands_for)[pattern.row] * right[self.indices.long()]
        return self._csr(pattern.indptr, pattern.indices, values)

    @cached_property
    def _with_self_loops(self) -> _WithSelfLoops:
        device = self.indptr.device
        own = torch.arange(self.num_dst, device=device)
        row = torch.repeat_interleave(own, self.indptr.diff())
        self_loop = self.indptr[:-1].long() + own
        neighbour = torch.arange(len(row), device=device) + row + 1
        indices = torch.empty(len(row) + self.num_dst, dtype=self.indices.dtype, device=device)
        indices[self_loop] = (own if self.dst is None else self.dst).to(indices.dtype)
        indices[neighbour] = self.indices
        indptr = self.indptr + torch.arange(self.num_dst + 1, dtype=self.indptr.dtype, device=device)
        return _WithSelfLoops(indptr, indices, self_loop, neighbour, row)

    def _csr(self, indptr: Tensor, indices: Tensor, values: Tensor) -> Tensor:
        size = (self.num_dst, self.num_src)
        return torch.sparse_csr_tensor(indptr, indices, values, size=size, check_invariants=False)


def degrees(graph: Graph | Topology) -> Tensor:
    """[N] float32: each node's number of neighbours."""
    return torch.from_numpy(graph.indptr).diff().float()


def whole_graph(graph: Graph) -> Block:
    """The block of a layer that computes every node from all its neighbours."""
    indptr, indices = torch.from_numpy(graph.indptr), torch.from_numpy(graph.indices)
    return Block(indptr, indices, graph.num_nodes, graph.num_nodes, degrees(graph))


def rows_in_place(graph: Graph, degree: Tensor, start: int, stop: int, wanted: Tensor | None) -> Block:
    """The block that computes nodes start..stop-1 from all their neighbours and reads every node where it stands.

    `wanted` [stop - start] of bool leaves some of them out. Nothing is copied or renumbered: for layers that look at
    their neighbours' rows alone, and whose input is in memory as it is.
    """
    rows, indptr, indices = _rows(graph, start, stop, wanted)
    return Block(indptr, indices, graph.num_nodes, len(rows), degree, rows)


def block_of_rows(graph: Graph, degree: Tensor, start: int, stop: int, wanted: Tensor | None) -> tuple[Tensor, Block]:
    """The block that computes nodes start..stop-1 from all their neighbours, and the nodes its columns stand for.

    `wanted` [stop - start] of bool leaves some of them out. Only the rows' own part of a mapped topology is read.
    """
    rows, indptr, indices = _rows(graph, start, stop, wanted)
    nodes, where = indices.unique(return_inverse=True)
    among_rows = torch.searchsorted(rows, nodes)
    is_row = rows[among_rows.clamp(max=len(rows) - 1)] == nodes
    column = torch.where(is_row, among_rows, len(rows) - 1 + (~is_row).cumsum(0)).to(indices.dtype)
    columns = torch.cat([rows, nodes[~is_row]])
    return columns, Block(indptr, column[where], len(columns), len(rows), degree[columns])


def _rows(graph: Graph, start: int, stop: int, wanted: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """The nodes start..stop-1, as far as they are wanted, and their neighbours as (indptr, indices)."""
    row_ends = torch.from_numpy(graph.indptr[start : stop + 1])
    indices = torch.from_numpy(graph.indices[int(row_ends[0]) : int(row_ends[-1])])
    rows = torch.arange(start, stop, dtype=indices.dtype)
    counts = row_ends.diff()
    if wanted is not None:
        indices = indices[torch.repeat_interleave(wanted, counts)]
        rows, counts = rows[wanted], counts[wanted]
    indptr = torch.zeros(len(rows) + 1, dtype=row_ends.dtype)
    torch.cumsum(counts, 0, out=indptr[1:])
    return rows, indptr, indices
