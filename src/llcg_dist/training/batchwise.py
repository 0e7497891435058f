"""Inference over the full graph in batches of nodes with all their neighbours, for models that are no list of stages.

A model of the user's own computes all its layers at once, so a batch needs the neighbourhood of its nodes, as many hops
as the exact output depends on. Batches are as large as fit into the limit on edges, or into twice what a single node
needs. A graph that fits as a whole is one batch.
"""

import contextlib
from collections.abc import Iterator
from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch.nn.modules.batchnorm import _BatchNorm

from llcg_dist import seeding
from llcg_dist.data import progress
from llcg_dist.data.graph import Graph
from llcg_dist.data.rows import Array
from llcg_dist.data.upload import device_of, upload
from llcg_dist.models.base import Model
from llcg_dist.models.samplers import all_neighbours_sampler
from llcg_dist.sampling.block import EDGES_PER_NODE, Block, Subgraph, full_graph_block
from llcg_dist.sampling.minibatch import Sample
from llcg_dist.training.moments import Moments, observed_input

_RECALIBRATION_BATCHES = 16
"""BatchNorm is recalibrated on so many batches of a graph that does not fit into one."""


def is_one_batch(graph: Graph, chunk: int) -> bool:
    """Whether the whole graph fits into the limit on the edges of a batch."""
    return 2 * graph.num_edges <= EDGES_PER_NODE * chunk


class BatchedForward:
    """The forward pass over the full graph: logits of `nodes` with the model's current parameters, in eval mode.

    With `recalibrate`, BatchNorm's running statistics are first set to mean and variance of its input over the whole
    graph, or over batches that are drawn with a fixed seed where the graph does not fit into one.
    """

    def __init__(
        self, graph: Graph, model: Model, chunk: int, nodes: Array | None = None, recalibrate: bool = False
    ) -> None:
        """`chunk`: a batch has at most 8 * `chunk` edges, or twice those of one node. `nodes`: mask [N]; None: all."""
        self._graph, self._model, self._recalibrates = graph, model, recalibrate
        self._most_edges = EDGES_PER_NODE * chunk
        self._nodes = np.arange(graph.num_nodes) if nodes is None else np.flatnonzero(nodes)
        self._features, self._device = torch.from_numpy(graph.features), device_of(model)
        self._whole = _whole_graph(graph, model, str(self._device)) if is_one_batch(graph, chunk) else None
        self._sampler = None if self._whole else all_neighbours_sampler(model, graph)
        self._rows_of_batch = 0, 0
        self._bounds: list[tuple[int, int]] | None = None

    @torch.no_grad()
    def logits(self, recalibrate: bool = True) -> Tensor:
        """[N, C]; rows outside of `nodes` are undefined. With recalibrate=False the model's running statistics are used
        as they are."""
        if recalibrate and self._recalibrates:
            self._recalibrate()
        self._model.eval()
        if self._whole:
            return self._forward(self._whole)
        output: Tensor | None = None
        for sample in self._samples():
            rows = self._forward(sample)
            if output is None:
                output = torch.empty(self._graph.num_nodes, rows.shape[1], device=rows.device)
            output[sample.seeds.long()] = rows
        assert output is not None
        return output

    def _recalibrate(self) -> None:
        """Sets BatchNorm's running statistics one after the other, because each depends on those before it."""
        samples = [self._whole] if self._whole else list(self._recalibration_samples())
        self._model.eval()
        for norm in self._norms_in_order(samples[0]):
            moments = Moments()
            with observed_input(norm, partial(self._add_rows, moments)):
                for sample in samples:
                    self._rows_of_batch = len(sample.nodes), len(sample.seeds)
                    self._forward(sample)
            moments.write(norm)

    def _norms_in_order(self, sample: Sample) -> list[_BatchNorm]:
        """Those with running statistics, in the order in which a forward pass meets them."""
        order = list[_BatchNorm]()
        with contextlib.ExitStack() as hooks:
            for module in self._model.modules():
                if isinstance(module, _BatchNorm) and module.track_running_stats:
                    hooks.enter_context(observed_input(module, partial(_append, order, module)))
            self._forward(sample)
        return list(dict.fromkeys(order))

    def _add_rows(self, moments: Moments, x: Tensor) -> None:
        """Of a hidden state the rows of the batch's own nodes count: others lack some of their neighbours."""
        num_nodes, num_seeds = self._rows_of_batch
        moments.add(x[:num_seeds] if len(x) == num_nodes else x)

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
                edges = self._sample(start, start + size).num_edges
                if edges > self._most_edges:
                    if size == 1:  # smaller batches would read the same neighbourhood again and again
                        self._most_edges, size = 2 * edges, len(self._nodes)
                    else:
                        size = max(1, min(size // 2, size * self._most_edges // edges))
                    continue
                self._bounds.append((start, start + size))
                start += size
                size = size * 2 if 2 * edges < self._most_edges else size
        return self._bounds

    def _sample(self, start: int, stop: int) -> Sample:
        assert self._sampler is not None
        progress.advance()
        return self._sampler.sample(self._nodes[start:stop], seed=0)

    def _forward(self, sample: Sample) -> Tensor:
        rows = upload(self._features[sample.nodes.long()], self._device)
        return self._model(rows.float(), [block.to(str(self._device)) for block in sample.blocks])


def _append(order: list[_BatchNorm], norm: _BatchNorm, x: Tensor) -> None:
    order.append(norm)


def _whole_graph(graph: Graph, model: Model, device: str) -> Sample:
    """Its blocks stay on the device from one evaluation to the next."""
    nodes = torch.arange(graph.num_nodes)
    block = full_graph_block(graph).to(device)
    blocks: list[Block] = [block] * model.depth
    if model.reads_subgraph:
        size = graph.num_nodes
        blocks = [Subgraph(block.indptr, block.indices, size, size, block.degree, num_outputs=size)]
    return Sample(nodes, nodes, blocks)
