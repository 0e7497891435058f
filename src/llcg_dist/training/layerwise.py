"""A model over the whole graph in bounded memory: stage by stage, a chunk of nodes at a time, exact.

What has to fit at any time is the state that enters a stage, the state that leaves it, and one chunk with the nodes it
reads. Features and topology are only ever read in pieces, so they may be larger than memory; so may the states, if a
scratch folder is given. Every row is computed from all its neighbours, so chunks of any size give the same logits.
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
from llcg_dist.sampling.block import EDGES_PER_NODE, Block, block_of_rows, degrees, rows_in_place, whole_graph


@dataclass(frozen=True)
class _Chunk:
    """Nodes start..stop-1, of which `wanted` [stop - start] are computed (None: all)."""

    start: int
    stop: int
    wanted: Tensor | None

    def rows(self, state: Tensor) -> Tensor:
        rows = state[self.start : self.stop]
        return rows if self.wanted is None else rows[self.wanted]

    def write(self, rows: Tensor, state: Tensor) -> None:
        target = state[self.start : self.stop]
        if self.wanted is None:
            target.copy_(rows)
        else:
            target[self.wanted] = rows


class WholeGraphForward:
    """Computes the logits of `nodes` (a mask; default: all) with the model as it stands, in eval mode.

    With `recalibrate`, every BatchNorm first takes mean and variance of its input over the whole graph. Running
    statistics never enter training, so nothing that is learned changes.
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
        self._graph, self._model, self._scratch, self._recalibrates = graph, model, scratch, recalibrate
        self._features, self._degree = torch.from_numpy(graph.features), degrees(graph)
        self._bounds = _chunk_bounds(graph.indptr, chunk)
        self._wanted = _nodes_to_compute(graph, model, self._bounds, nodes, recalibrate)
        # A graph of one chunk keeps its block, and with it the adjacency matrices, from one evaluation to the next.
        self._whole = whole_graph(graph) if len(self._bounds) == 1 else None

    @torch.no_grad()
    def logits(self) -> Tensor:
        """[N, C]; rows of nodes that were not asked for hold no meaning."""
        self._model.eval()
        state, there = self._features, None
        for stage, wanted in zip(self._model.each_stage(), self._wanted, strict=True):
            if self._recalibrates and stage.norm is not None:
                _take_statistics(stage.norm, state, self._bounds)
            state, there = self._next_state(stage, state, there, wanted), wanted
        return state

    def _next_state(self, stage: Stage, state: Tensor, there: Tensor | None, wanted: Tensor | None) -> Tensor:
        """`there`: the rows of `state` that were computed; `wanted`: those to compute of the next."""
        following: Tensor | None = None
        compute = self._compute
        if self._reads_in_place(stage, state):
            compute = self._compute_in_place
            if state is not self._features:
                for chunk in self._chunks(there):
                    chunk.write(stage.prepared(chunk.rows(state)), state)
        for chunk in self._chunks(wanted):
            rows = compute(stage, state, chunk)
            if following is None:
                following = self._empty(rows.shape[1], wanted)
            chunk.write(rows, following)
        assert following is not None
        return following

    def _compute(self, stage: Stage, state: Tensor, chunk: _Chunk) -> Tensor:
        if not stage.reads_neighbours:
            return stage(chunk.rows(state).float())
        if self._whole is not None:
            rows = stage(state.float(), self._whole)
            return rows if chunk.wanted is None else rows[chunk.wanted]
        columns, block = self._block(chunk)
        return stage(state.index_select(0, columns).float(), block)

    def _reads_in_place(self, stage: Stage, state: Tensor) -> bool:
        """Whether the layer can take the whole state as it is: where it can, chunks cost no more than the whole graph.

        A state is ours to prepare, once for all chunks; features are not: they are mapped, and perhaps float16.
        """
        layer = stage.layer
        if self._whole is not None or stage.residual or not isinstance(layer, BlockLayer) or not layer.reads_in_place:
            return False
        as_they_are = state.dtype == torch.float32 and stage.norm is None and not stage.relu
        return state is not self._features or as_they_are

    def _compute_in_place(self, stage: Stage, state: Tensor, chunk: _Chunk) -> Tensor:
        assert stage.layer is not None
        block = rows_in_place(self._graph, self._degree, chunk.start, chunk.stop, chunk.wanted)
        return stage.layer(state, block)

    def _block(self, chunk: _Chunk) -> tuple[Tensor, Block]:
        return block_of_rows(self._graph, self._degree, chunk.start, chunk.stop, chunk.wanted)

    def _chunks(self, wanted: Tensor | None) -> Iterator[_Chunk]:
        for start, stop in self._bounds:
            here = None if wanted is None else wanted[start:stop]
            if here is None or here.any():
                yield _Chunk(start, stop, None if here is None or here.all() else here)

    def _empty(self, width: int, wanted: Tensor | None) -> Tensor:
        """A state to fill; rows that are never written cost neither memory nor disk."""
        shape = (self._graph.num_nodes, width)
        if self._scratch is None:
            return torch.empty(shape)
        rows = shape[0] if wanted is None else int(wanted.sum())
        return torch.from_numpy(_scratch_array(self._scratch, shape, rows * width * 4))


def _scratch_array(folder: str, shape: tuple[int, int], needed: int) -> Array:
    """float32 in a file without a name, which is gone with its last use."""
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
    """Runs of at most `chunk` nodes and 8 * `chunk` edges (or one node) that cover the graph."""
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
    """For each stage a mask of the nodes whose output anything later depends on; None where that is all of them.

    Where few nodes are labelled (MAG240M: one in a hundred) the rest need not be scored.
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
    grown = mask.clone()
    for start, stop in bounds:
        row_ends = torch.from_numpy(graph.indptr[start : stop + 1])
        indices = torch.from_numpy(graph.indices[int(row_ends[0]) : int(row_ends[-1])])
        grown[indices[torch.repeat_interleave(mask[start:stop], row_ends.diff())].long()] = True
    return None if grown.all() else grown


def _take_statistics(norm: nn.BatchNorm1d, state: Tensor, bounds: list[tuple[int, int]]) -> None:
    """Mean and unbiased variance of all rows, in float64, merged chunk by chunk (Chan et al., 1979)."""
    count = 0
    mean = torch.zeros(state.shape[1], dtype=torch.float64)
    squares = torch.zeros_like(mean)  # sum of squared distances to the mean
    for start, stop in bounds:
        rows = state[start:stop].double()
        here = rows.mean(dim=0)
        total = count + len(rows)
        squares += (rows - here).square().sum(dim=0) + (here - mean).square() * (count * len(rows) / total)
        mean += (here - mean) * (len(rows) / total)
        count = total
    norm.get_buffer("running_mean").copy_(mean)
    norm.get_buffer("running_var").copy_(squares / max(1, count - 1))
