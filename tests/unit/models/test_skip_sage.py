"""MAG240M's model against dense matrices."""

import torch
from torch import Tensor, nn

from llcg_dist.config.model import ModelConfig
from llcg_dist.data.graph import Graph
from tests.helpers.graphs import hub_graph
from tests.helpers.models import adjacency, conv_weights, drawn_model, full_graph_logits, layer_of, norm_of


def sage(layer: nn.Module, x: Tensor, graph: Graph) -> Tensor:
    ones, w = adjacency(graph), conv_weights(layer)
    mean = ones @ x / ones.sum(dim=1, keepdim=True).clamp(min=1)
    return mean @ w["lin_l.weight"].T + w["lin_l.bias"] + x @ w["lin_r.weight"].T + w["lin_r.bias"]


@torch.no_grad()
def test_skip_sage_is_two_sage_layers_and_a_perceptron() -> None:
    graph = hub_graph()
    model = drawn_model(ModelConfig(name="skip_sage", layers=2), graph)
    assert [type(stage.layer).__name__ for stage in model.each_stage()] == ["Sage", "Sage", "Linear", "Linear"]
    one, two, three, four = model.each_stage()
    h = sage(layer_of(one), torch.from_numpy(graph.features), graph)
    h = sage(layer_of(two), norm_of(two)(h).relu(), graph)
    h = layer_of(three)(norm_of(three)(h).relu())
    torch.testing.assert_close(full_graph_logits(model, graph), layer_of(four)(norm_of(four)(h).relu()))
