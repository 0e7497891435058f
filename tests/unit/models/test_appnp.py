"""Personalised propagation against dense matrices."""

import torch

from llcg_dist.config.model import ModelConfig
from tests.helpers.graphs import hub_graph
from tests.helpers.models import drawn_model, full_graph_logits, gcn_adjacency, layer_of


@torch.no_grad()
def test_appnp_returns_to_its_first_state_at_every_step() -> None:
    graph = hub_graph()
    model = drawn_model(ModelConfig(name="appnp", layers=3, teleport=0.3), graph)
    stages = model.each_stage()
    first = stages[0](torch.from_numpy(graph.features)).relu()
    h = first
    for _ in range(3):
        h = 0.3 * first + 0.7 * gcn_adjacency(graph) @ h
    torch.testing.assert_close(full_graph_logits(model, graph), layer_of(stages[-1])(h))
