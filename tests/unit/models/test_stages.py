"""Stages: where dropout stands."""

import torch

from llcg_dist.config.model import ModelConfig
from tests.helpers.graphs import hub_graph
from tests.helpers.models import drawn_model, full_graph_logits, staged_model


def test_dropout_is_off_in_evaluation_and_before_the_first_layer() -> None:
    graph, config = hub_graph(), ModelConfig(name="resgcn", dropout=0.5)
    stages = staged_model(config, graph.num_features, graph.num_classes).each_stage()
    assert [stage.dropout for stage in stages] == [0.0, 0.5, 0.5, 0.5]
    model = drawn_model(config, graph)
    assert torch.equal(full_graph_logits(model, graph), full_graph_logits(model, graph))
    model.train()
    assert not torch.equal(full_graph_logits(model, graph), full_graph_logits(model, graph))
