"""Rows that stay in their table give what the copied rows give, to the bit."""

import numpy as np
import pytest
import torch

from llcg_dist.config.model import ModelConfig
from llcg_dist.data.feature_rows import LazyRows, materialize
from llcg_dist.sampling.neighbor import NeighborSampler
from tests.helpers.graphs import community_graph
from tests.helpers.models import staged_model

GRAPH = community_graph(60)
FEATURES = torch.from_numpy(GRAPH.features)
BATCH = NeighborSampler(GRAPH, [3, 3]).sample(np.array([7, 3, 11, 50]), 1)


@pytest.mark.parametrize("hidden", [2, 400])
@pytest.mark.parametrize("name", ["sage", "gcn", "gat", "appnp", "resgcn", "skip_sage", "mlp"])
def test_every_model_takes_them(name: str, hidden: int) -> None:
    found = []
    for inputs in (LazyRows(FEATURES, BATCH.nodes), FEATURES[BATCH.nodes.long()]):
        torch.manual_seed(0)
        model = staged_model(ModelConfig(name, hidden=hidden), GRAPH.num_features, GRAPH.num_classes)
        logits = model(inputs, BATCH.blocks[: model.depth]) if model.depth else model(inputs[:4], [])
        logits.square().sum().backward()
        found.append([logits.detach(), *(weight.grad for weight in model.parameters() if weight.grad is not None)])
    assert len(found[0]) > 1
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))


def test_a_normalised_input_is_gathered() -> None:
    torch.manual_seed(0)
    model = staged_model(ModelConfig("sage", input_norm=True, dropout=0.0), GRAPH.num_features, GRAPH.num_classes)
    assert not model.each_stage()[0].accepts_lazy_rows
    rows = LazyRows(FEATURES, BATCH.nodes)
    assert torch.equal(model(rows, BATCH.blocks), model(rows.materialize(), BATCH.blocks))


def test_another_type_is_gathered_and_the_right_one_is_not() -> None:
    rows = LazyRows(FEATURES, BATCH.nodes)
    assert rows.to("cpu").float() is rows
    halves = LazyRows(FEATURES.half(), BATCH.nodes)
    widened = halves.float()
    assert isinstance(widened, torch.Tensor)
    assert torch.equal(widened, FEATURES.half()[BATCH.nodes.long()].float())
    assert torch.equal(materialize(rows), FEATURES[BATCH.nodes.long()])
    assert rows.shape == materialize(rows).shape
