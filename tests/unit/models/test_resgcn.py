"""Residual graph convolutions against dense matrices."""

import torch

from llcg_dist.config.model import ModelConfig
from tests.helpers.graphs import hub_graph
from tests.helpers.models import conv_weights, drawn_model, full_graph_logits, gcn_adjacency, layer_of, norm_of


@torch.no_grad()
def test_resgcn_adds_each_convolution_to_what_went_in() -> None:
    graph = hub_graph()
    model = drawn_model(ModelConfig(name="resgcn", layers=2), graph)
    first, *convolutions, last = model.each_stage()
    assert len(convolutions) == 2
    h = first(torch.from_numpy(graph.features))
    for stage in convolutions:
        w = conv_weights(stage.layer)
        h = h + gcn_adjacency(graph) @ norm_of(stage)(h).relu() @ w["lin.weight"].T + w["bias"]
    torch.testing.assert_close(full_graph_logits(model, graph), layer_of(last)(norm_of(last)(h).relu()))
