"""Measures how far a module forward(x, edge_index) looks, on a small graph of paths."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

Forward = Callable[[Tensor, Tensor], Tensor]

HOP_ARGUMENTS = ("num_sampled_nodes_per_hop", "num_sampled_edges_per_hop")
"""Of the forward of PyG's own models, and of modules that call torch_geometric.utils.trim_to_layer."""
_PATHS = 4
"""Several paths, because ReLU may hide what a node contributes to the end of one."""
_TOLERANCE = 1e-5
"""Of outputs that should be equal, relative to the largest: another order of sums."""


@dataclass(frozen=True)
class ReceptiveField:
    """What a node's output depends on."""

    layers: int | None
    """It depends on the features of nodes up to so many hops away; None: of all nodes, however far."""
    exact_hops: int | None
    """So many hops of all neighbours give the exact output; one more than `layers` where degrees count. None: no number
    of hops does."""


@contextmanager
def revealing_weights(module: nn.Module, num_features: int, most: int) -> Iterator[None]:
    """Within it the module has weights that hide nothing of how far it looks; then it has its own again.

    A narrow layer of fresh weights may be silent: where its few ReLUs are all closed, nothing passes. That is common
    where a layer is as wide as there are classes, as in PyG's GIN. Absolute values of the weights open them; they are
    taken where they show that the module looks farther.
    """
    own = [(each, each.detach().clone()) for each in module.parameters() if each.is_floating_point()]
    layers = _depth(receptive_field(module, num_features, most))
    try:
        with torch.no_grad():
            for parameter, values in own:
                parameter.copy_(values.abs())
        if _depth(receptive_field(module, num_features, most)) <= layers:
            _restore(own)
        yield
    finally:
        _restore(own)


def _restore(values: list[tuple[nn.Parameter, Tensor]]) -> None:
    with torch.no_grad():
        for parameter, own in values:
            parameter.copy_(own)


def _depth(field: ReceptiveField) -> float:
    return float("inf") if field.layers is None else field.layers


def receptive_field(forward: Forward, num_features: int, most: int) -> ReceptiveField:
    """Up to `most` layers are told from None. `forward` must be in eval mode."""
    length = most + 3
    x, distance, edge_index = path_graph(num_features, length)
    x.requires_grad_()
    output = forward(x, edge_index)[distance == 0]
    (gradient,) = torch.autograd.grad(output.square().sum(), x)
    reached = distance[gradient.abs().sum(dim=1) > 0]
    layers = int(reached.max()) if len(reached) else 0
    if layers > most:
        return ReceptiveField(None, None)
    for hops in range(max(layers, 1), length):
        if _same(_truncated(forward, x.detach(), distance, edge_index, hops), output):
            return ReceptiveField(layers, hops)
    return ReceptiveField(layers, None)


def trims_exactly(forward: Callable[..., Tensor], num_features: int, layers: int) -> bool:
    """Whether a module that is told the nodes and edges of each hop, as PyG's loaders do, uses that to compute less,
    with the same output. One with skip connections over all layers, or with degrees, may not."""
    x, distance, edge_index = path_graph(num_features, layers)
    order = distance.argsort(stable=True)
    place = order.argsort()
    edges = place[edge_index[:, distance[edge_index[1]] < layers]]
    edges = edges[:, distance[order][edges[1]].argsort(stable=True)]
    sizes = [_PATHS] * (layers + 1), distance[order][edges[1]].bincount(minlength=layers).tolist()
    with torch.no_grad():
        full = forward(x[order], edges)
        try:
            trimmed = forward(x[order], edges, **dict(zip(HOP_ARGUMENTS, sizes, strict=True)))
        except Exception:  # a module may say so in any way
            return False
    return len(trimmed) < len(full) and _same(trimmed[:_PATHS], full[:_PATHS])


def path_graph(num_features: int, length: int) -> tuple[Tensor, Tensor, Tensor]:
    """(x, distance, edge_index) of paths with `length` edges: `distance` [N] from the node at the path's beginning."""
    nodes = torch.arange(_PATHS * (length + 1)).view(_PATHS, length + 1)
    forth = torch.stack([nodes[:, :-1].reshape(-1), nodes[:, 1:].reshape(-1)])
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(nodes.numel(), num_features, generator=generator)
    return x, torch.arange(length + 1).repeat(_PATHS), torch.cat([forth, forth.flip(0)], dim=1)


def _truncated(forward: Forward, x: Tensor, distance: Tensor, edge_index: Tensor, hops: int) -> Tensor:
    """The output of the paths' first nodes on what a sampler of all neighbours would give it: nodes up to `hops` away,
    and the edges into all but the last of them."""
    near = distance <= hops
    new_id = near.cumsum(0) - 1
    edges = edge_index[:, distance[edge_index[1]] < hops]
    with torch.no_grad():
        return forward(x[near], new_id[edges])[distance[near] == 0]


def _same(output: Tensor, full: Tensor) -> bool:
    return bool((output - full).abs().max() <= _TOLERANCE * full.abs().max())
