"""Predicts the peak memory of each rank from the sizes of its graph, model and batches.

Private memory must fit, or the kernel kills the rank. Memory-mapped files count as resident while there is room, and
are evicted when there is none. Predictions are within a factor of two of the measured peak resident memory
(peak_rss_mb_server and peak_rss_mb_machine of summary.json); the constants below were fitted to such measurements.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from llcg_dist.config.train import EvaluateConfig, Precision
from llcg_dist.doctor.batches import BatchSize
from llcg_dist.models.structure import Layer
from llcg_dist.sampling.block import EDGES_PER_NODE

IMPORTS_PRIVATE_BYTES = 320_000_000
"""Private memory of a rank after it has imported torch, PyG and numba and joined the process group."""

IMPORTS_SHARED_BYTES = 140_000_000
"""Shared libraries of these imports: resident in every rank, but one copy for all ranks of a host."""

_COPIES_OF_STATE = 5
"""Copies of a hidden state that a gradient step keeps: after BatchNorm, ReLU and dropout, a mask, and the gradient."""
_FLOAT_BYTES = 4
_BYTES_PER_EDGE = 24
"""Memory of a block and its adjacency matrices for each edge."""
_BYTES_PER_SOURCE_ROW = 16
"""Memory of a block for each node that it reads."""


@dataclass(frozen=True)
class RankMemory:
    """Predicted memory of one rank in bytes: private, and memory-mapped files."""

    name: str
    private: int
    mapped: int

    @property
    def resident(self) -> int:
        """Peak resident memory of the process, if there is room for all mapped files."""
        return self.private + self.mapped + IMPORTS_SHARED_BYTES


class LayerCosts:
    """Memory of a model that is known by its layers."""

    is_exact = True

    def __init__(self, layers: Sequence[Layer]) -> None:
        self._layers = layers

    def model_bytes(self) -> int:
        return model_bytes(self._layers)

    def step_bytes(self, batch: BatchSize) -> int:
        return step_bytes(self._layers, batch)

    def evaluation_bytes(self, num_nodes: int, num_edges: int, evaluate: EvaluateConfig) -> int:
        on_disk, state_bytes = evaluate.scratch is not None, 2 if evaluate.states == Precision.bfloat16 else 4
        return evaluation_bytes(self._layers, num_nodes, num_edges, evaluate.chunk, on_disk, state_bytes)


def model_bytes(layers: Sequence[Layer]) -> int:
    """Weights, gradients, Adam's two moments, and as much again for flat copies that are sent, evaluated and saved."""
    weights = sum(layer.kind.weight_matrices * (layer.width_in + 1) * layer.width_out for layer in layers)
    return _FLOAT_BYTES * weights * 8


def step_bytes(layers: Sequence[Layer], batch: BatchSize) -> int:
    """Memory of one gradient step: features and blocks of the batch, and the activations kept for the backward pass."""
    total, depth = batch.inputs * layers[0].width_in * _FLOAT_BYTES, 0
    for position, layer in enumerate(layers):
        rows_in = rows_out = batch.rows[depth]
        copies = _COPIES_OF_STATE if position > 0 else 1
        total += rows_in * layer.width_in * _FLOAT_BYTES * (copies - 1)
        if layer.kind.reads_neighbours:
            rows_out = batch.rows[depth + 1]
            total += _messages(layer, batch.edges[depth]) + batch.edges[depth] * _BYTES_PER_EDGE
            total += rows_in * _BYTES_PER_SOURCE_ROW
            product = rows_out * layer.width_in if layer.kind.keeps_aggregate else rows_in * layer.width_out
            total += product * _FLOAT_BYTES
            depth += 1
        total += rows_out * layer.width_out * _FLOAT_BYTES * 2
    return total


def evaluation_bytes(
    layers: Sequence[Layer],
    num_nodes: int,
    num_edges: int,
    chunk: int,
    on_disk: bool,
    state_bytes: int = _FLOAT_BYTES,
) -> int:
    """Memory of a pass over the full graph: two hidden states of the largest layer and one chunk with its inputs.

    With `on_disk` (evaluate.scratch) the hidden states take no memory. `state_bytes`: of one number of a hidden state.
    """
    one_chunk = num_nodes <= chunk and 2 * num_edges <= EDGES_PER_NODE * chunk
    edges = 2 * num_edges if one_chunk else min(2 * num_edges, EDGES_PER_NODE * chunk)
    nodes_of_chunk = min(num_nodes, chunk, math.ceil(edges * num_nodes / max(1, 2 * num_edges)) or chunk)
    peak = 0
    for position, layer in enumerate(layers):
        # The features are memory-mapped; where they become narrower, they are mapped before they are added up.
        entering = num_nodes * layer.width_in * state_bytes
        sums_rows = layer.kind.reads_neighbours and not layer.kind.messages_per_edge
        maps_first = sums_rows and layer.width_out < layer.width_in and not one_chunk
        if position == 0:
            entering = num_nodes * layer.width_out * state_bytes if maps_first else 0
        leaving = num_nodes * layer.width_out * (_FLOAT_BYTES if layer is layers[-1] else state_bytes)
        # Features may need conversion or BatchNorm.
        copies = layer.kind.reads_neighbours and (not layer.kind.reads_hidden_in_place or position == 0)
        rows = min(num_nodes, nodes_of_chunk + edges) if copies and not maps_first else nodes_of_chunk
        work = rows * layer.width_in * _FLOAT_BYTES * 2 + nodes_of_chunk * layer.width_out * _FLOAT_BYTES * 2
        work += (_messages(layer, edges) + edges * _BYTES_PER_EDGE) if layer.kind.reads_neighbours else 0
        peak = max(peak, work + (0 if on_disk else entering + leaving))
    return peak


def _messages(layer: Layer, edges: int) -> int:
    """Bytes of the messages of a layer that holds one for every edge."""
    return edges * layer.width_out * _FLOAT_BYTES * 2 if layer.kind.messages_per_edge else 0
