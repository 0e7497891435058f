"""Blocks: the rectangular CSR adjacency [num_dst, num_src] of one message-passing layer.

A block has a row for every destination node, which the layer computes, and a column for every source node, which it
reads. The destination nodes are the first of the source nodes, unless `Block.dst` says where they are. Nothing here
depends on a sampler.
"""

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from llcg_dist.data.csr import Topology
from llcg_dist.data.feature_rows import Rows
from llcg_dist.data.graph import Graph
from llcg_dist.data.upload import upload
from llcg_dist.sampling.sparse_matrix import SparseMatrix

warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")
# Arrays of a store are memory-mapped read-only on purpose: nothing writes to them.
warnings.filterwarnings("ignore", message="The given NumPy array is not writable")


EDGES_PER_NODE = 8
"""Layer-wise inference over a full graph takes chunks of n nodes and at most 8n edges (or a single node). The limit on
edges bounds memory: attention layers hold a message for every edge of a chunk."""


class _WithSelfLoops(NamedTuple):
    """The CSR pattern of a block with a self-loop inserted before the neighbours of each row."""

    indptr: Tensor
    indices: Tensor
    self_loop: Tensor  # [num_dst] positions of the self-loops in `indices`
    neighbour: Tensor  # [entries of the block] positions of the neighbours in `indices`
    row: Tensor  # [entries of the block] the row of each neighbour


@dataclass(frozen=True)
class Block:
    """The (sampled) neighbours that one layer aggregates: row i's are indices[indptr[i]:indptr[i+1]].

    degree [num_src] is the number of neighbours of each source node before sampling.
    """

    indptr: Tensor
    indices: Tensor
    num_src: int
    num_dst: int
    degree: Tensor
    dst: Tensor | None = None
    """[num_dst] columns of the destination nodes; None: they are the first num_dst columns."""

    def dst_rows(self, x: Rows) -> Tensor:
        """x [num_src, ...] -> the rows [num_dst, ...] of the destination nodes."""
        return x[: self.num_dst] if self.dst is None else x[self.dst]

    def to(self, device: str, degree: Tensor | None = None) -> "Block":
        """The block with its tensors on this device; `degree`: what is there already."""
        if self.indptr.device.type == torch.device(device).type:
            return self
        indptr, indices = upload(self.indptr, device), upload(self.indices, device)
        degree = upload(self.degree, device) if degree is None else degree
        dst = None if self.dst is None else upload(self.dst, device)
        return replace(self, indptr=indptr, indices=indices, degree=degree, dst=dst)

    def within_parts(self, part: Tensor, degree: Tensor) -> "Block":
        """The block without cut edges. `part` [num_src]: each node's part, `degree` [num_src]: its degree within it."""
        row = torch.repeat_interleave(torch.arange(self.num_dst), self.indptr.diff())
        inside = part[row] == part[self.indices.long()]
        kept_before = torch.cat([torch.zeros(1, dtype=torch.int64), inside.cumsum(0)])
        indptr = kept_before[self.indptr.long()].to(self.indptr.dtype)
        return replace(self, indptr=indptr, indices=self.indices[inside], degree=degree)

    @cached_property
    def mean_adjacency(self) -> SparseMatrix:
        """[num_dst, num_src]; its product with x is the mean over each node's neighbours, without self-loop."""
        values = self._for_each_entry(self.indptr.diff().float().reciprocal())
        return self._matrix(self.indptr, self.indices, values)

    @cached_property
    def attention_adjacency(self) -> Tensor:
        """[num_dst, num_src] of ones for the neighbours and a self-loop, as the torch CSR tensor that PyG's attention
        layers take.

        Indices are int64, the only type that PyG's softmax over several heads takes.
        """
        pattern = self._with_self_loops
        ones = torch.ones(len(pattern.indices), device=self.degree.device)
        return self._matrix(pattern.indptr.long(), pattern.indices.long(), ones).tensor()

    def gcn_adjacency(self, norm: str) -> SparseMatrix:
        """[num_dst, num_src]: D^-1/2 (A+I) D^-1/2 (symmetric) or D^-1 (A+I) (row), D from the degrees plus one.

        If s of d neighbours are sampled, each is weighted by d/s: the sum keeps its expectation, and with all
        neighbours the block equals the rows of the full matrix. So sampling, correction and evaluation share one
        formula.
        """
        pattern = self._with_self_loops
        degree = self.degree + 1
        inverse = degree.rsqrt() if norm == "symmetric" else degree.reciprocal()
        left = self.dst_rows(inverse)
        right = inverse if norm == "symmetric" else torch.ones_like(inverse)
        sampling_weight = self.dst_rows(self.degree) / self.indptr.diff().clamp(min=1)
        values = torch.empty(len(pattern.indices), device=self.degree.device)
        values[pattern.self_loop] = left * self.dst_rows(right)
        values[pattern.neighbour] = (left * sampling_weight)[pattern.row] * right[self.indices.long()]
        return self._matrix(pattern.indptr, pattern.indices, values)

    @cached_property
    def _with_self_loops(self) -> _WithSelfLoops:
        device = self.indptr.device
        own = torch.arange(self.num_dst, device=device)
        row = self._for_each_entry(own)
        self_loop = self.indptr[:-1].long() + own
        neighbour = torch.arange(len(row), device=device) + row + 1
        indices = torch.empty(len(row) + self.num_dst, dtype=self.indices.dtype, device=device)
        indices[self_loop] = (own if self.dst is None else self.dst).to(indices.dtype)
        indices[neighbour] = self.indices
        indptr = self.indptr + torch.arange(self.num_dst + 1, dtype=self.indptr.dtype, device=device)
        return _WithSelfLoops(indptr, indices, self_loop, neighbour, row)

    def _for_each_entry(self, of_row: Tensor) -> Tensor:
        """[entries]: of_row [num_dst] repeated for every entry of its row. Their number is given: to count them a GPU
        would have to be waited for."""
        return torch.repeat_interleave(of_row, self.indptr.diff(), output_size=len(self.indices))

    def _matrix(self, indptr: Tensor, indices: Tensor, values: Tensor) -> SparseMatrix:
        return SparseMatrix(indptr, indices, values, (self.num_dst, self.num_src))


@dataclass(frozen=True)
class Subgraph(Block):
    """A sampled subgraph as a block: its rows are the nodes whose neighbours were drawn, the first of them the seeds.

    What a model with forward(x, edge_index) reads; of its output the first `num_outputs` rows count.
    """

    num_outputs: int = 0
    nodes_per_hop: tuple[int, ...] = ()
    """The seeds, the nodes that they reached, and so on, in this order among the columns; empty: not known."""
    edges_per_hop: tuple[int, ...] = ()
    """Counted before the block leaves the CPU; empty: not counted yet."""

    def to(self, device: str, degree: Tensor | None = None) -> "Subgraph":
        moved = super().to(device, degree)
        assert isinstance(moved, Subgraph)
        return moved if moved is self else replace(moved, edges_per_hop=self._count_edges())

    @property
    def hops(self) -> dict[str, list[int]]:
        """Nodes and edges of every hop under PyG's names: a module that takes them leaves out what a layer has no use
        for (torch_geometric.utils.trim_to_layer)."""
        return {
            "num_sampled_nodes_per_hop": list(self.nodes_per_hop),
            "num_sampled_edges_per_hop": list(self.edges_per_hop or self._count_edges()),
        }

    def _count_edges(self) -> tuple[int, ...]:
        ends = self.indptr[torch.tensor((0, *self.nodes_per_hop[:-1])).cumsum(0)]
        return tuple(ends.diff().tolist())

    @cached_property
    def edge_index(self) -> Tensor:
        """[2, entries] int64: from each neighbour to its row, PyG's convention."""
        rows = torch.arange(self.num_dst, device=self.indptr.device)
        return torch.stack([self.indices.long(), self._for_each_entry(rows)])


def degrees(graph: Graph | Topology) -> Tensor:
    """[N] float32: each node's number of neighbours."""
    return torch.from_numpy(graph.indptr).diff().float()


def full_graph_block(graph: Graph) -> Block:
    """The square block [N, N] of a full graph: every node is computed from all its neighbours."""
    indptr, indices = torch.from_numpy(graph.indptr), torch.from_numpy(graph.indices)
    return Block(indptr, indices, graph.num_nodes, graph.num_nodes, degrees(graph))


def block_with_global_columns(graph: Graph, degree: Tensor, start: int, stop: int, mask: Tensor | None) -> Block:
    """The block that computes nodes start..stop-1 from all their neighbours, with a column for every node of the graph.

    `mask` [stop - start] selects some of these nodes; `degree` is [N]. Nothing is copied or renumbered: for layers that
    only read the rows of neighbours, on an input [N, width] that is in memory.
    """
    rows, indptr, indices = _rows(graph, start, stop, mask)
    return Block(indptr, indices, graph.num_nodes, len(rows), degree, rows)


def block_with_local_columns(
    graph: Graph, degree: Tensor, start: int, stop: int, mask: Tensor | None
) -> tuple[Tensor, Block]:
    """(nodes of the columns, block) that computes nodes start..stop-1 from all their neighbours.

    `mask` [stop - start] selects some of these nodes; `degree` is [N]. Columns are numbered locally: the computed nodes
    first, then the other nodes that they read. Only the entries of these rows are read from a memory-mapped topology.
    """
    rows, indptr, indices = _rows(graph, start, stop, mask)
    nodes, inverse = indices.unique(return_inverse=True)
    among_rows = torch.searchsorted(rows, nodes)
    is_row = rows[among_rows.clamp(max=len(rows) - 1)] == nodes
    column = torch.where(is_row, among_rows, len(rows) - 1 + (~is_row).cumsum(0)).to(indices.dtype)
    columns = torch.cat([rows, nodes[~is_row]])
    return columns, Block(indptr, column[inverse], len(columns), len(rows), degree[columns])


def _rows(graph: Graph, start: int, stop: int, mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """(nodes, indptr, indices) of the nodes start..stop-1 that `mask` selects (None: all), and of their neighbours."""
    row_ends = torch.from_numpy(graph.indptr[start : stop + 1])
    indices = torch.from_numpy(graph.indices[int(row_ends[0]) : int(row_ends[-1])])
    rows = torch.arange(start, stop, dtype=indices.dtype)
    counts = row_ends.diff()
    if mask is not None:
        indices = indices[torch.repeat_interleave(mask, counts)]
        rows, counts = rows[mask], counts[mask]
    indptr = torch.zeros(len(rows) + 1, dtype=row_ends.dtype)
    torch.cumsum(counts, 0, out=indptr[1:])
    return rows, indptr, indices
