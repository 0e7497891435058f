"""The memory that each rank of a job will need, predicted from the sizes of its graph, model and batches.

`private` is what a rank holds for itself: what must fit, or the kernel ends it. `mapped` is what it reads of files: it
counts as resident while there is room, and goes when there is none. Within a factor of two of what runs report
(peak_rss_mb_server and _machine of summary.json); the constants below were fitted to such reports.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from llcg_dist.config.facts import arch_string
from llcg_dist.config.schema import ModelConfig
from llcg_dist.doctor.batches import BatchSize
from llcg_dist.sampling.block import EDGES_PER_NODE

IMPORTS_PRIVATE = 320_000_000
"""Python, torch, PyG and DGL, imported and joined to the others: what each rank pays before it holds anything."""

IMPORTS_SHARED = 140_000_000
"""Their libraries: resident in every rank, but one copy for all ranks of a host."""

_LETTERS = {"gat": "{n}", "appnp": "L{n}L", "resgcn": "L{n}L", "skip_sage": "{n}LL"}
_REPEATED = {"gat": "A", "appnp": "P", "resgcn": "G", "skip_sage": "S"}
_STATES_OF_A_STEP = 5
"""Copies of a hidden state that backpropagation keeps: normalised, rectified, dropped out, its mask, the gradient."""


@dataclass(frozen=True)
class Layer:
    """One layer as far as memory goes; `kind` is G, S, L, A (attention) or P (propagation)."""

    kind: str
    width_in: int
    width_out: int

    @property
    def reads_neighbours(self) -> bool:
        return self.kind != "L"


@dataclass(frozen=True)
class Need:
    """Bytes of one rank."""

    name: str
    private: int
    mapped: int

    @property
    def resident(self) -> int:
        """What the process shows as its peak resident memory where there is room for all."""
        return self.private + self.mapped + IMPORTS_SHARED


def layers_of(model: ModelConfig, num_features: int, num_classes: int) -> list[Layer]:
    """Without building the model: its libraries take seconds to import."""
    if model.name in _LETTERS:
        letters = _LETTERS[model.name].format(n=_REPEATED[model.name] * model.layers)
    else:
        letters = arch_string(model).replace("B", "")
    widths = [num_features, *[model.hidden] * (len(letters) - 1), num_classes]
    return [Layer(kind, widths[i], widths[i + 1]) for i, kind in enumerate(letters)]


def model_bytes(layers: Sequence[Layer]) -> int:
    """Weights, gradients, Adam's two moments, and as much again for the flat copies that are sent, judged and saved."""
    weights = sum((2 if layer.kind == "S" else 1) * (layer.width_in + 1) * layer.width_out for layer in layers)
    return 4 * weights * 8


def step_bytes(layers: Sequence[Layer], batch: BatchSize) -> int:
    """One gradient step: the features of the batch, its blocks, and what backpropagation keeps of every layer."""
    total, depth = batch.inputs * layers[0].width_in * 4, 0
    for position, layer in enumerate(layers):
        rows_in = rows_out = batch.rows[depth]
        states = _STATES_OF_A_STEP if position > 0 else 1
        total += rows_in * layer.width_in * 4 * (states - 1)
        if layer.reads_neighbours:
            rows_out = batch.rows[depth + 1]
            total += _messages(layer, batch.edges[depth]) + batch.edges[depth] * 24 + rows_in * 16
            total += rows_out * layer.width_in * 4 if layer.kind == "S" else rows_in * layer.width_out * 4
            depth += 1
        total += rows_out * layer.width_out * 4 * 2
    return total


def evaluation_bytes(layers: Sequence[Layer], num_nodes: int, num_edges: int, chunk: int, on_disk: bool) -> int:
    """The stage of a pass over the whole graph that needs most: two states, one chunk and the nodes it reads."""
    whole = num_nodes <= chunk and 2 * num_edges <= EDGES_PER_NODE * chunk
    edges = 2 * num_edges if whole else min(2 * num_edges, EDGES_PER_NODE * chunk)
    most = 0
    for position, layer in enumerate(layers):
        entering = 0 if position == 0 else num_nodes * layer.width_in * 4  # the features are mapped
        leaving = num_nodes * layer.width_out * 4
        # SAGE reads states where they stand (GCN, too, but for resgcn); features may have to be widened or normalised.
        copies = layer.reads_neighbours and (layer.kind != "S" or position == 0)
        rows = min(num_nodes, chunk + edges if copies else chunk)
        work = rows * layer.width_in * 4 * 2 + min(num_nodes, chunk) * layer.width_out * 4 * 2
        work += (_messages(layer, edges) + edges * 24) if layer.reads_neighbours else 0
        most = max(most, work + (0 if on_disk else entering + leaving))
    return most


def _messages(layer: Layer, edges: int) -> int:
    """Attention holds a message for every edge; the others are sparse products."""
    return edges * layer.width_out * 4 * 2 if layer.kind == "A" else 0
