"""Models of the user's own (model=own): an ordinary PyG module forward(x, edge_index), or one that reads blocks."""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter

from llcg_dist.config.model import ModelConfig
from llcg_dist.config.targets import call
from llcg_dist.data.feature_rows import Rows, materialize
from llcg_dist.errors import UserError, reason_in
from llcg_dist.models.base import Model
from llcg_dist.models.receptive_field import (
    HOP_ARGUMENTS,
    ReceptiveField,
    path_graph,
    receptive_field,
    revealing_weights,
    trims_exactly,
)
from llcg_dist.sampling.block import Block, Subgraph

_MOST_LAYERS = 16
"""A module that reads more hops is taken for one that reads the whole graph."""


@torch.inference_mode(False)
@torch.enable_grad()
def build(config: ModelConfig, num_features: int, num_classes: int) -> Model:
    """What model.target returns for in_channels, out_channels and model.options, as a model that can be trained.

    Gradients tell how far it looks, also where the caller, as one who predicts does, has turned them off.
    """
    target = str(config.target)
    module = call("model.target", target, in_channels=num_features, out_channels=num_classes, **config.options)
    if isinstance(module, Model):  # made of our stages: evaluated layer by layer
        return module
    if not isinstance(module, nn.Module):
        raise UserError(f"model.target={target}: returned a {type(module).__name__}; must return a torch.nn.Module")
    _refuse_caches(target, module)
    _require_float32(target, module)
    sizes = num_features, num_classes
    return BlockModel(module) if _reads_blocks(module) else EdgeIndexModel(target, module, config, *sizes)


class OwnModel(Model):
    """A user's module. Its state_dict is the module's own, so that saved weights load into the user's class."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        return self.module.state_dict(*args, **kwargs)

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        return self.module.load_state_dict(state_dict, strict, assign)

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, nn.Parameter]]:
        return self.module.named_parameters(*args, **kwargs)


class BlockModel(OwnModel):
    """A module of our shape: it has `depth`, and forward(x [inputs, F], blocks) returns [outputs, C]."""

    @property
    def depth(self) -> int:
        return int(self.module.depth)  # type: ignore[arg-type]

    def prepared(self, x: Rows, blocks: Sequence[Block]) -> Rows:
        return materialize(x)

    def forward(self, x: Rows, blocks: Sequence[Block]) -> Tensor:
        return self.module(materialize(x), blocks)


class EdgeIndexModel(OwnModel):
    """A module forward(x [N, F], edge_index [2, E]) -> [N, C], trained on a sampled subgraph whose first rows are the
    batch."""

    reads_subgraph = True

    def __init__(
        self, target: str, module: nn.Module, config: ModelConfig, num_features: int, num_classes: int
    ) -> None:
        super().__init__(module)
        self.receptive_field, self.trims = _measure(target, module, num_features, num_classes)
        found = self.receptive_field.layers
        self._layers = config.layers if found is None else found
        if found and found != config.layers:
            rule = f"{target} reads {found} hop(s); set model.layers={found}"
            raise UserError(f"model.layers={config.layers}: {rule}")

    @property
    def depth(self) -> int:
        return self._layers

    @property
    def exact_hops(self) -> int:
        """Where no number of hops is exact (norms over all nodes, global attention), as many as the layers need."""
        return self.receptive_field.exact_hops or self._layers

    def prepared(self, x: Rows, blocks: Sequence[Block]) -> Rows:
        (subgraph,) = blocks
        assert isinstance(subgraph, Subgraph)
        _ = subgraph.edge_index  # it is kept
        return materialize(x)

    def forward(self, x: Rows, blocks: Sequence[Block]) -> Tensor:
        (subgraph,) = blocks
        assert isinstance(subgraph, Subgraph)
        hops = subgraph.hops if self.trims and subgraph.nodes_per_hop else {}
        logits: Tensor = self.module(materialize(x), subgraph.edge_index, **hops)
        return logits[: subgraph.num_outputs]


def _reads_blocks(module: nn.Module) -> bool:
    arguments = list(inspect.signature(module.forward).parameters)
    return hasattr(module, "depth") and "blocks" in arguments[1:2]


def _measure(target: str, module: nn.Module, num_features: int, num_classes: int) -> tuple[ReceptiveField, bool]:
    """How far the module looks, and whether it trims; its lazy parameters take their shapes on the way."""
    module.eval()
    x, _, edge_index = path_graph(num_features, 2)
    try:
        if any(isinstance(parameter, UninitializedParameter) for parameter in module.parameters()):
            module(x, edge_index)
        with torch.random.fork_rng(devices=[]):
            output = module(x, edge_index)
            require_logits(target, output, len(x), num_classes)
            if _pools(module):
                return ReceptiveField(None, None), False
            with revealing_weights(module, num_features, _MOST_LAYERS):
                field = receptive_field(module, num_features, _MOST_LAYERS)
                return field, _trims(module, field, num_features)
    except UserError:
        raise
    except Exception as error:
        what = f"failed in forward(x, edge_index) on a small graph of {num_features} features"
        reason = reason_in(type(module), error)
        raise UserError(f"model.target={target}: {what} ({reason})") from error


def _pools(module: nn.Module) -> bool:
    """Whether it has a pooling layer of PyG's, as GraphUNet does: which nodes that keeps depends on all, however far,
    and on the weights, so that a measurement finds another number of hops every time."""
    kinds = {kind.__module__ for part in module.modules() for kind in type(part).__mro__}
    return any(kind.startswith("torch_geometric.nn.pool.") for kind in kinds)


def _trims(module: nn.Module, field: ReceptiveField, num_features: int) -> bool:
    """Whether it leaves out of a layer the nodes that are too far away to matter in those that follow."""
    takes_hops = set(HOP_ARGUMENTS) <= inspect.signature(module.forward).parameters.keys()
    return bool(field.layers) and takes_hops and trims_exactly(module, num_features, field.layers or 0)


def require_logits(target: str, output: Any, num_nodes: int, num_classes: int) -> None:
    """Raises UserError for an output of another shape than [num_nodes, num_classes]."""
    expected = [num_nodes, num_classes]
    shape = list(output.shape) if isinstance(output, Tensor) else type(output).__name__
    if shape != expected:
        rule = f"must return [nodes, classes], {expected} for out_channels={num_classes}, not {shape}"
        raise UserError(f"model.target={target}: forward {rule}")


def _require_float32(target: str, module: nn.Module) -> None:
    for name, tensor in module.state_dict().items():
        kind = tensor.dtype  # lazy parameters have one, and no other methods of a tensor
        if (kind.is_floating_point and kind != torch.float32) or kind.is_complex:
            raise UserError(f"model.target={target}: {name} is {tensor.dtype}; models are trained in float32")


def _refuse_caches(target: str, module: nn.Module) -> None:
    """GCNConv(cached=True) and its like keep the first edge_index that they see."""
    for name, part in module.named_modules():
        if getattr(part, "cached", False) is True:
            raise UserError(f"model.target={target}: {name} has cached=True, which no mini-batch can use; set it False")
