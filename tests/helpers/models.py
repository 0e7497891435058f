"""Models with drawn weights, their logits over a full graph, and their parts as the types they have."""

from dataclasses import replace

import torch
from torch import Tensor, nn

from llcg_dist.config.model import ModelConfig
from llcg_dist.data.graph import Graph
from llcg_dist.models import build_model
from llcg_dist.models.stages import GraphModel, Stage
from llcg_dist.sampling.block import full_graph_block
from llcg_dist.training.layerwise import FullGraphForward
from tests.helpers.graphs import dense, dense_gcn


def staged_model(config: ModelConfig, num_features: int, num_classes: int) -> GraphModel:
    """A model of ours, as the sequence of stages that it is."""
    model = build_model(config, num_features, num_classes)
    assert isinstance(model, GraphModel)
    return model


def drawn_model(config: ModelConfig, graph: Graph) -> GraphModel:
    """Eight wide, in eval mode, no weight at its trivial initial value, BatchNorm's statistics those of this graph."""
    torch.manual_seed(0)
    model = staged_model(replace(config, hidden=8), graph.num_features, graph.num_classes)
    for name, parameter in model.named_parameters():
        if parameter.ndim == 1:  # biases and BatchNorm's affine weights
            nn.init.uniform_(parameter, 0.5, 1.5) if "norm.weight" in name else nn.init.uniform_(parameter, -0.5, 0.5)
    FullGraphForward(graph, model, chunk=graph.num_nodes, recalibrate=True).logits()
    return model.eval()


@torch.no_grad()
def full_graph_logits(model: GraphModel, graph: Graph) -> Tensor:
    return model(torch.from_numpy(graph.features), [full_graph_block(graph)] * model.depth)


def layer_of(stage: Stage) -> nn.Module:
    assert stage.layer is not None
    return stage.layer


def conv_weights(layer: nn.Module | None) -> dict[str, Tensor]:
    """The state_dict of the PyG layer inside one of ours."""
    conv = getattr(layer, "conv", None)
    assert isinstance(conv, nn.Module)
    return conv.state_dict()


def norm_of(stage: Stage) -> nn.BatchNorm1d:
    assert stage.norm is not None
    return stage.norm


def batchnorms(model: GraphModel) -> list[nn.BatchNorm1d]:
    """In the order in which they are applied."""
    return [stage.norm for stage in model.each_stage() if stage.norm is not None]


def running_statistics(norm: nn.BatchNorm1d) -> tuple[Tensor, Tensor]:
    """Mean and variance."""
    assert norm.running_mean is not None
    assert norm.running_var is not None
    return norm.running_mean, norm.running_var


def adjacency(graph: Graph) -> Tensor:
    """[N, N] float32 of 0 and 1."""
    return torch.from_numpy(dense(graph)).float()


def gcn_adjacency(graph: Graph, norm: str = "symmetric") -> Tensor:
    """[N, N] float32: the dense matrix of a graph convolution."""
    return torch.from_numpy(dense_gcn(graph, norm)).float()


@torch.no_grad()
def recalibrated_logits(model: GraphModel, graph: Graph) -> Tensor:
    """Logits with the full graph's statistics: up to each BatchNorm in turn, its mean and variance in float64, go on.

    The model keeps the statistics.
    """
    x = torch.from_numpy(graph.features)
    for stage in model.eval().each_stage():
        if stage.norm is not None:
            mean, variance = running_statistics(stage.norm)
            mean.copy_(x.double().mean(dim=0))
            variance.copy_(x.double().var(dim=0, unbiased=True))
        x = stage(x, full_graph_block(graph) if stage.reads_neighbours else None)
    return x
