"""Exact layer-wise inference over the full graph in bounded memory: stage by stage, a chunk of nodes at a time.

Three things have to fit into memory at a time: the hidden state [N, width] that enters a stage, the one that leaves it,
and one chunk of nodes with their neighbours. Features and topology are read in pieces only, so they may be larger than
memory; so may the hidden states if they are kept in a scratch folder. A model on a GPU has its hidden states there, and
the rows of features and the blocks of one chunk after the other. Every row is computed from all its neighbours, so
the logits do not depend on the size of the chunks.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from llcg_dist.config.train import Precision
from llcg_dist.data.graph import Graph
from llcg_dist.data.rows import Array
from llcg_dist.data.upload import device_of, upload
from llcg_dist.models.products import Sizes, sparse_product
from llcg_dist.models.stages import BlockLayer, GraphModel, ProductLayer, Stage
from llcg_dist.sampling.block import (
    Block,
    block_with_global_columns,
    block_with_local_columns,
    degrees,
    full_graph_block,
)
from llcg_dist.training.chunks import Chunk, chunk_bounds, chunks_of
from llcg_dist.training.hidden_states import IN_MEMORY, HiddenStates, narrowed
from llcg_dist.training.moments import Moments
from llcg_dist.training.precision import computing_in


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
        states: HiddenStates = IN_MEMORY,
        nodes: Array | None = None,
        recalibrate: bool = False,
    ) -> None:
        """`chunk`: nodes computed at a time. `nodes`: mask [N] of the nodes whose logits are needed; None: all."""
        self._graph, self._model, self._states, self._recalibrates = graph, model, states, recalibrate
        self._features, self._degree = torch.from_numpy(graph.features), degrees(graph)
        self._bounds = chunk_bounds(graph.indptr, chunk)
        self._wanted = _nodes_to_compute(graph, model, self._bounds, nodes, recalibrate)
        # A graph of one chunk keeps its block, and with it the adjacency matrices, from one evaluation to the next.
        self._device = device_of(model)
        self._full_block = full_graph_block(graph).to(str(self._device)) if len(self._bounds) == 1 else None
        self._degree_there = upload(self._degree, self._device)

    @torch.no_grad()
    def logits(self, recalibrate: bool = True) -> Tensor:
        """[N, C] float32; rows outside of `nodes` are undefined. With recalibrate=False the model's running statistics
        are used as they are, whatever the forward pass was made for."""
        self._model.eval()
        state, computed, stages = self._features, None, self._model.each_stage()
        with computing_in(self._states.precision, str(self._device)):
            for stage, wanted in zip(stages, self._wanted, strict=True):
                if recalibrate and self._recalibrates and stage.norm is not None:
                    _recalibrate(stage.norm, state, self._bounds)
                precision = Precision.float32 if stage is stages[-1] else self._states.precision
                state, computed = self._next_state(stage, state, computed, wanted, precision), wanted
        return state

    def _next_state(
        self, stage: Stage, state: Tensor, computed: Tensor | None, wanted: Tensor | None, precision: str
    ) -> Tensor:
        """The output [N, out] of a stage. Masks [N] (None: all): `computed` are the rows of `state` that hold values,
        `wanted` those to compute of the output."""
        if self._maps_first(stage, state, computed, wanted):
            return self._map_and_add_up(stage, state, computed, wanted, precision)
        output: Tensor | None = None
        compute = self._compute
        if self._uses_global_columns(stage, state):
            compute = self._compute_with_global_columns
            if state is not self._features:
                for chunk in chunks_of(self._bounds, computed):
                    chunk.write(stage.layer_input(chunk.rows(state)), state)
        for chunk in chunks_of(self._bounds, wanted):
            rows = compute(stage, state, chunk)
            if output is None:
                output = self._empty_state(rows.shape[1], wanted, precision)
            chunk.write(rows, output)
        assert output is not None
        return output

    def _maps_first(self, stage: Stage, state: Tensor, computed: Tensor | None, wanted: Tensor | None) -> bool:
        """Whether multiplying all rows by the layer's weights, once, makes what is added up cheaper by more."""
        layer = stage.layer
        if self._full_block is not None or stage.residual or not isinstance(layer, ProductLayer):
            return False
        counts = (self._graph.num_nodes if mask is None else int(mask.sum()) for mask in (wanted, computed))
        rows, columns = counts
        entries = 2 * self._graph.num_edges if wanted is None else int(self._degree[wanted].sum())
        width_out, width_in = layer.weight.shape
        return Sizes(rows, columns, entries, width_in, width_out).weight_first()

    def _map_and_add_up(
        self, stage: Stage, state: Tensor, computed: Tensor | None, wanted: Tensor | None, precision: str
    ) -> Tensor:
        """The output of a stage A·(X·W) + X·W_self + b: X·W of all rows takes the place of a hidden state."""
        layer = stage.layer
        assert isinstance(layer, ProductLayer)
        width = len(layer.weight)
        output = self._empty_state(width, wanted, precision)
        is_hidden = state is not self._features
        mapped = narrowed(state, width) if is_hidden else self._empty_state(width, computed, self._states.precision)
        for chunk in chunks_of(self._bounds, computed):
            x = stage.layer_input(upload(chunk.rows(state), self._device).float())
            own = chunk.within(x, wanted)
            if layer.self_weight is not None and own is not None:
                own[0].write(functional.linear(own[1], layer.self_weight, layer.bias), output)
            chunk.write(functional.linear(x, layer.weight), mapped)
        for chunk in chunks_of(self._bounds, wanted):
            total = sparse_product(layer.adjacency(self._block(chunk)), mapped)
            rest = layer.bias if layer.self_weight is None else chunk.rows(output)
            chunk.write(total + rest, output)
        return output

    def _compute(self, stage: Stage, state: Tensor, chunk: Chunk) -> Tensor:
        """The stage's output for the wanted nodes of a chunk, from copies of the rows that it reads."""
        if not stage.reads_neighbours:
            return stage(upload(chunk.rows(state), self._device).float())
        if self._full_block is not None:
            rows = stage(upload(state, self._device).float(), self._full_block)
            return rows if chunk.wanted is None else rows[chunk.wanted]
        columns, block = block_with_local_columns(self._graph, self._degree, chunk.start, chunk.stop, chunk.wanted)
        rows = state.index_select(0, upload(columns, state.device))
        return stage(upload(rows, self._device).float(), block.to(str(self._device)))

    def _uses_global_columns(self, stage: Stage, state: Tensor) -> bool:
        """Whether the stage's layer can index the state [N, in] directly, so that no rows are copied for each chunk.

        BatchNorm and ReLU are then applied once for all chunks, in place. That is possible for a hidden state, which
        belongs to this forward pass, but not for the features, which are memory-mapped and may be float16: these are
        indexed directly only where they need no conversion, BatchNorm or ReLU, and where the model is on the CPU too.
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
        return state is not self._features or (needs_no_change and self._device.type == "cpu")

    def _compute_with_global_columns(self, stage: Stage, state: Tensor, chunk: Chunk) -> Tensor:
        """The layer's output for the wanted nodes of a chunk; `state` [N, in] is the layer's input already."""
        assert stage.layer is not None
        return stage.layer(state, self._block(chunk))

    def _block(self, chunk: Chunk) -> Block:
        """Of a chunk's wanted nodes, with a column for every node of the graph."""
        block = block_with_global_columns(self._graph, self._degree, chunk.start, chunk.stop, chunk.wanted)
        return block.to(str(self._device), self._degree_there)

    def _empty_state(self, width: int, wanted: Tensor | None, precision: str) -> Tensor:
        rows = self._graph.num_nodes if wanted is None else int(wanted.sum())
        return self._states.empty((self._graph.num_nodes, width), rows, precision, self._device)


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
