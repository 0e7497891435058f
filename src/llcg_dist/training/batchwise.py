"""Inference over the full graph in batches of nodes with all their neighbours, for models that are no list of stages.

A model of the user's own computes all its layers at once, so a batch needs the neighbourhood of its nodes, as many hops
as the exact output depends on. Batches are as large as fit into the limit on edges. A graph that fits as a whole is one
batch.
"""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor
from torch.nn.modules.batchnorm import _BatchNorm

from llcg_dist import seeding
from llcg_dist.data.graph import Graph
from llcg_dist.data.rows import Array
from llcg_dist.models.base import Model
from llcg_dist.models.samplers import all_neighbours_sampler
from llcg_dist.sampling.block import EDGES_PER_NODE, Block, Subgraph, degrees, full_graph_block
from llcg_dist.sampling.minibatch import Sample

_RECALIBRATION_BATCHES = 16
"""BatchNorm is recalibrated on so many batches of a graph that does not fit into one."""


class BatchedForward:
    """The forward pass over the full graph: logits of `nodes` with the model's current parameters, in eval mode.

    With `recalibrate`, BatchNorm's running statistics are first set to those of a pass over the whole graph, or to the
    mean over batches that are drawn with a fixed seed where the graph does not fit into one.
    """

    def __init__(
        self, graph: Graph, model: Model, chunk: int, nodes: Array | None = None, recalibrate: bool = False
    ) -> None:
        """`chunk`: a batch has at most 8 * `chunk` edges, or one node. `nodes`: mask [N]; None: all."""
        self._graph, self._model, self._recalibrates = graph, model, recalibrate
        self._most_edges = EDGES_PER_NODE * chunk
        self._nodes = np.arange(graph.num_nodes) if nodes is None else np.flatnonzero(nodes)
        self._features = torch.from_numpy(graph.features)
        self._whole = _whole_graph(graph, model) if 2 * graph.num_edges <= self._most_edges else None
        self._sampler = None if self._whole else all_neighbours_sampler(model, graph)
        self._bounds: list[tuple[int, int]] | None = None

    @torch.no_grad()
    def logits(self, recalibrate: bool = True) -> Tensor:
        """[N, C]; rows outside of `nodes` are undefined. With recalibrate=False the model's running statistics are used
        as they are."""
        norms = [module for module in self._model.modules() if isinstance(module, _BatchNorm)]
        if recalibrate and self._recalibrates and norms:
            self._recalibrate(norms)
        self._model.eval()
        if self._whole:
            return self._forward(self._whole)
        output: Tensor | None = None
        for sample in self._samples():
            rows = self._forward(sample)
            if output is None:
                output = torch.empty(self._graph.num_nodes, rows.shape[1])
            output[sample.seeds.long()] = rows
        assert output is not None
        return output

    def _recalibrate(self, norms: list[_BatchNorm]) -> None:
        """Every BatchNorm takes the mean over the batches of their statistics, everything else is in eval mode."""
        self._model.eval()
        momenta = [norm.momentum for norm in norms]
        for norm in norms:
            norm.train()
            norm.reset_running_stats()
            norm.momentum = None  # torch's word for the mean over all batches
        for sample in [self._whole] if self._whole else self._recalibration_samples():
            self._forward(sample)
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum

    def _recalibration_samples(self) -> Iterator[Sample]:
        bounds = self._all_bounds()
        rng = seeding.generator(0, seeding.SERVER_STREAM, 0)
        chosen = rng.choice(len(bounds), min(len(bounds), _RECALIBRATION_BATCHES), replace=False)
        return (self._sample(*bounds[position]) for position in chosen)

    def _samples(self) -> Iterator[Sample]:
        return (self._sample(start, stop) for start, stop in self._all_bounds())

    def _all_bounds(self) -> list[tuple[int, int]]:
        """Bounds of the batches in `nodes`; found once, because the graph does not change."""
        if self._bounds is None:
            self._bounds, start, size = [], 0, len(self._nodes)
            while start < len(self._nodes):
                size = min(size, len(self._nodes) - start)
                edges = _num_edges(self._sample(start, start + size))
                if edges > self._most_edges and size > 1:
                    size = max(1, min(size // 2, size * self._most_edges // edges))
                    continue
                self._bounds.append((start, start + size))
                start += size
                size = size * 2 if 2 * edges < self._most_edges else size
        return self._bounds

    def _sample(self, start: int, stop: int) -> Sample:
        assert self._sampler is not None
        return self._sampler.sample(self._nodes[start:stop], seed=0)

    def _forward(self, sample: Sample) -> Tensor:
        return self._model(self._features[sample.nodes.long()].float(), sample.blocks)


def _num_edges(sample: Sample) -> int:
    return sum(len(block.indices) for block in sample.blocks)


def _whole_graph(graph: Graph, model: Model) -> Sample:
    nodes = torch.arange(graph.num_nodes)
    block = full_graph_block(graph)
    blocks: list[Block] = [block] * model.depth
    if model.reads_subgraph:
        size = graph.num_nodes
        blocks = [Subgraph(block.indptr, block.indices, size, size, degrees(graph), num_outputs=size)]
    return Sample(nodes, nodes, blocks)
