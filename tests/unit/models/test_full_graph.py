"""A model over blocks as a module of PyG's kind: the logits of layer-wise inference, and gradients."""

from collections.abc import Mapping
from typing import Any

import pytest
import torch

from llcg_dist.config.model import ModelConfig
from llcg_dist.models import plain_module
from tests.helpers.graphs import hub_graph
from tests.helpers.models import drawn_model, full_graph_logits
from tests.helpers.own_data import edge_index_of

MODELS: list[Mapping[str, Any]] = [
    {"name": "sage"},
    {"name": "gcn", "layers": 3},
    {"name": "gat", "heads": 2},
    {"name": "appnp"},
    {"name": "resgcn"},
    {"name": "skip_sage"},
    {"name": "mlp"},
    {"name": "arch", "arch": "BSLBG"},
]


@pytest.mark.parametrize("settings", MODELS, ids=lambda settings: settings["name"])
def test_the_logits_are_those_of_evaluation(settings: Mapping[str, Any]) -> None:
    graph = hub_graph()
    model = drawn_model(ModelConfig(**settings), graph)
    x, edge_index = torch.from_numpy(graph.features), edge_index_of(graph)
    module, expected = plain_module(model), full_graph_logits(model, graph)
    assert torch.equal(module(x, edge_index), expected)
    once = edge_index[:, edge_index[0] < edge_index[1]]
    loops = torch.arange(graph.num_nodes).repeat(2, 1)
    with torch.no_grad():
        assert torch.equal(module(x.double(), torch.cat([once, once, loops], dim=1)), expected)


def test_it_can_be_trained_on() -> None:
    graph = hub_graph()
    module = plain_module(drawn_model(ModelConfig(), graph)).train()
    x = torch.from_numpy(graph.features).clone().requires_grad_()
    module(x, edge_index_of(graph)).logsumexp(dim=1).sum().backward()
    assert all(parameter.grad is not None and parameter.grad.isfinite().all() for parameter in module.parameters())
    assert x.grad is not None
    assert x.grad.abs().sum() > 0
