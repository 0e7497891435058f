"""Exact layer-wise inference over the full graph in bounded memory: stage by stage, a chunk of nodes at a time.

Three things have to fit into memory at a time: the hidden state [N, width] that enters a stage, the one that leaves it,
and one chunk of nodes with their neighbours. Features and topology are read in pieces only, so they may be larger than
memory; so may the hidden states if they are kept in a scratch folder. Every row is computed from all its neighbours, so
the logits do not depend on the size of the chunks.
"""

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from llcg_dist.data.graph import Graph
from llcg_dist.data.rows import Array
from llcg_dist.errors import UserError
from llcg_dist.models.stages import BlockLayer, GraphModel, Stage
from llcg_dist.sampling.block import (
    EDGES_PER_NODE,
    block_with_global_columns,
    block_with_local_columns,
    degrees,
    full_graph_block,
)
from llcg_dist.training.moments import Moments


@dataclass(frozen=True)
class _Chunk:
    """Nodes start..stop-1, of which those in the mask `wanted` [stop - start] are computed (None: all)."""

    start: int
    stop: int
    wanted: Tensor | None

    def rows(self, state: Tensor) -> Tensor:
        """The rows of the wanted nodes of a state [N, width]."""
        rows = state[self.start : self.stop]
        return rows if self.wanted is None else rows[self.wanted]

    def write(self, rows: Tensor, state: Tensor) -> None:
        """Writes the rows of the wanted nodes into a state [N, width]."""
        target = state[self.start : self.stop]
        if self.wanted is None:
            target.copy_(rows)
        else:
            target[self.wanted] = rows


class FullGraphForward:
    """The forward pass over the full graph: logits of `nodes` with the model's current parameters, in eval mode.

    With `recalibrate`, every BatchNorm first sets its running statistics to mean and variance of its input over all
    nodes of the graph. Running statistics never enter training, so nothing that is learned changes.
    """

    def __init__(
        self,
        graph: Graph,
        model: GraphModel,
        chunk: int,
        scratch: str | None = None,
        nodes: Array | None = None,
        recalibrate: bool = False,
    ) -> None:
        """`chunk`: nodes computed at a time. `scratch`: folder for hidden states; None: memory. `nodes`: mask [N] of
        the nodes whose logits are needed; None: all."""
        self._graph, self._model, self._scratch, self._recalibrates = graph, model, scratch, recalibrate
        self._features, self._degree = torch.from_numpy(graph.features), degrees(graph)
        self._bounds = _chunk_bounds(graph.indptr, chunk)
        self._wanted = _nodes_to_compute(graph, model, self._bounds, nodes, recalibrate)
        # A graph of one chunk keeps its block, and with it the adjacency matrices, from one evaluation to the next.
        self._full_block = full_graph_block(graph) if len(self._bounds) == 1 else None

    @torch.no_grad()
    def logits(self, recalibrate: bool = True) -> Tensor:
        """[N, C]; rows outside of `nodes` are undefined. With recalibrate=False the model's running statistics are used
        as they are, whatever the forward pass was made for."""
        self._model.eval()
        state, computed = self._features, None
        for stage, wanted in zip(self._model.each_stage(), self._wanted, strict=True):
            if recalibrate and self._recalibrates and stage.norm is not None:
                _recalibrate(stage.norm, state, self._bounds)
            state, computed = self._next_state(stage, state, computed, wanted), wanted
        return state

    def _next_state(self, stage: Stage, state: Tensor, computed: Tensor | None, wanted: Tensor | None) -> Tensor:
        """The output [N, out] of a stage. Masks [N] (None: all): `computed` are the rows of `state` that hold values,
        `wanted` those to compute of the output."""
        output: Tensor | None = None
        compute = self._compute
        if self._uses_global_columns(stage, state):
            compute = self._compute_with_global_columns
            if state is not self._features:
                for chunk in self._chunks(computed):
                    chunk.write(stage.layer_input(chunk.rows(state)), state)
        for chunk in self._chunks(wanted):
            rows = compute(stage, state, chunk)
            if output is None:
                output = self._empty_state(rows.shape[1], wanted)
            chunk.write(rows, output)
        assert output is not None
        return output

    def _compute(self, stage: Stage, state: Tensor, chunk: _Chunk) -> Tensor:
        """The stage's output for the wanted nodes of a chunk, from copies of the rows that it reads."""
        if not stage.reads_neighbours:
            return stage(chunk.rows(state).float())
        if self._full_block is not None:
            rows = stage(state.float(), self._full_block)
            return rows if chunk.wanted is None else rows[chunk.wanted]
        columns, block = block_with_local_columns(self._graph, self._degree, chunk.start, chunk.stop, chunk.wanted)
        return stage(state.index_select(0, columns).float(), block)

    def _uses_global_columns(self, stage: Stage, state: Tensor) -> bool:
        """Whether the stage's layer can index the state [N, in] directly, so that no rows are copied for each chunk.

        BatchNorm and ReLU are then applied once for all chunks, in place. That is possible for a hidden state, which
        belongs to this forward pass, but not for the features, which are memory-mapped and may be float16: these are
        indexed directly only where they need no conversion, BatchNorm or ReLU.
        """
        layer = stage.layer
        if (
            self._full_block is not None
            or stage.residual
            or not isinstance(layer, BlockLayer)
            or not layer.accepts_global_columns
        ):
            return False
        needs_no_change = state.dtype == torch.float32 and stage.norm is None and not stage.relu
        return state is not self._features or needs_no_change

    def _compute_with_global_columns(self, stage: Stage, state: Tensor, chunk: _Chunk) -> Tensor:
        """The layer's output for the wanted nodes of a chunk; `state` [N, in] is the layer's input already."""
        assert stage.layer is not None
        block = block_with_global_columns(self._graph, self._degree, chunk.start, chunk.stop, chunk.wanted)
        return stage.layer(state, block)

    def _chunks(self, wanted: Tensor | None) -> Iterator[_Chunk]:
        """The chunks that hold nodes of the mask `wanted` [N] (None: all chunks)."""
        for start, stop in self._bounds:
            mask = None if wanted is None else wanted[start:stop]
            if mask is None or mask.any():
                yield _Chunk(start, stop, None if mask is None or mask.all() else mask)

    def _empty_state(self, width: int, wanted: Tensor | None) -> Tensor:
        """[N, width] float32, uninitialised; rows that are never written take up neither memory nor disk."""
        shape = (self._graph.num_nodes, width)
        if self._scratch is None:
            return torch.empty(shape)
        rows = shape[0] if wanted is None else int(wanted.sum())
        return torch.from_numpy(_scratch_array(self._scratch, shape, rows * width * 4))


def _scratch_array(folder: str, shape: tuple[int, int], needed: int) -> Array:
    """A float32 array in an unnamed temporary file, which is deleted with the array. `needed`: bytes to be written."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(folder).free
        with tempfile.TemporaryFile(dir=folder) as file:
            if free >= needed:  # on a full disk the first write to a mapped page would kill the process
                return np.memmap(file, np.float32, mode="w+", shape=shape)
    except OSError as error:
        raise UserError(f"evaluate.scratch={folder}: cannot be written ({error.strerror})") from None
    raise UserError(f"evaluate.scratch={folder}: {needed / 1e9:.1f} GB are needed, {free / 1e9:.1f} GB are free")


def _chunk_bounds(indptr: Array, chunk: int) -> list[tuple[int, int]]:
    """(start, stop) of runs of at most `chunk` nodes and 8 * `chunk` edges (or one node) that cover the graph."""
    bounds, start, num_nodes = [], 0, len(indptr) - 1
    while start < num_nodes:
        edges_end = np.searchsorted(indptr, int(indptr[start]) + EDGES_PER_NODE * chunk, side="right") - 1
        stop = max(start + 1, min(start + chunk, int(edges_end), num_nodes))
        bounds.append((start, stop))
        start = stop
    return bounds


def _nodes_to_compute(
    graph: Graph, model: GraphModel, bounds: list[tuple[int, int]], nodes: Array | None, recalibrate: bool
) -> list[Tensor | None]:
    """For each stage a mask [N] of the nodes whose output anything later depends on; None where that is all of them.

    Where few nodes are labelled (MAG240M: one in a hundred) the last stages compute these nodes alone.
    """
    wanted: list[Tensor | None] = []
    needed = None if nodes is None or nodes.all() else torch.from_numpy(nodes)
    for stage in reversed(model.each_stage()):
        wanted.insert(0, needed)
        if recalibrate and stage.norm is not None:
            needed = None
        if needed is not None and stage.reads_neighbours:
            needed = _with_neighbours(graph, bounds, needed)
    return wanted


def _with_neighbours(graph: Graph, bounds: list[tuple[int, int]], mask: Tensor) -> Tensor | None:
    """The mask [N] extended by the neighbours of its nodes; None where that is every node."""
    extended = mask.clone()
    for start, stop in bounds:
        row_ends = torch.from_numpy(graph.indptr[start : stop + 1])
        indices = torch.from_numpy(graph.indices[int(row_ends[0]) : int(row_ends[-1])])
        extended[indices[torch.repeat_interleave(mask[start:stop], row_ends.diff())].long()] = True
    return None if extended.all() else extended


def _recalibrate(norm: nn.BatchNorm1d, state: Tensor, bounds: list[tuple[int, int]]) -> None:
    """Sets the running statistics to mean and unbiased variance of all rows of `state` [N, width]."""
    moments = Moments()
    for start, stop in bounds:
        moments.add(state[start:stop])
    moments.write(norm)
