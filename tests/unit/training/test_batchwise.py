"""Evaluation in batches with all neighbours: the whole graph's logits for any limit, and recalibrated statistics."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from llcg_dist.config.model import ModelConfig
from llcg_dist.data.graph import Graph
from llcg_dist.models import build_model
from llcg_dist.models.own import OwnModel
from llcg_dist.sampling.block import full_graph_block
from llcg_dist.training.batchwise import BatchedForward
from tests.helpers.graphs import graph_of, random_graph

F, C = 6, 4
SMALL = {"hidden_channels": 8, "num_layers": 2}
MODELS: dict[str, dict[str, Any]] = {
    "torch_geometric.nn.GCN": SMALL | {"norm": "batch_norm"},
    "torch_geometric.nn.GraphSAGE": SMALL,
    "tests.helpers.own_models.Jumping": {},
    "tests.helpers.own_models.OnBlocks": {},
}


def own(target: str, options: dict[str, Any]) -> OwnModel:
    torch.manual_seed(0)
    model = build_model(ModelConfig(name="own", target=target, options=options), F, C)
    assert isinstance(model, OwnModel)
    return model


def edge_index(graph: Graph) -> Tensor:
    rows = torch.repeat_interleave(torch.arange(graph.num_nodes), torch.from_numpy(graph.indptr).diff())
    return torch.stack([torch.from_numpy(graph.indices).long(), rows])


@torch.no_grad()
def whole_graph_logits(model: OwnModel, graph: Graph) -> Tensor:
    x = torch.from_numpy(graph.features)
    reads = edge_index(graph) if model.reads_subgraph else [full_graph_block(graph)] * model.depth
    return model.module(x, reads)


@pytest.mark.parametrize("target", MODELS)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_batches_of_any_size_give_the_logits_of_the_whole_graph(target: str, data: st.DataObject) -> None:
    num_nodes = data.draw(st.integers(10, 60), "nodes")
    graph = random_graph(num_nodes, data.draw(st.integers(0, 150), "edges"), data.draw(st.integers(0, 99), "seed"))
    nodes = np.array(data.draw(st.lists(st.booleans(), min_size=num_nodes, max_size=num_nodes), "asked for"))
    nodes[data.draw(st.integers(0, num_nodes - 1))] = True
    model, chunk = own(target, MODELS[target]), data.draw(st.integers(1, 60), "chunk")
    forward = BatchedForward(graph, model, chunk, nodes)
    expected = whole_graph_logits(model.eval(), graph)
    for _ in range(2):  # bounds are found in the first pass
        torch.testing.assert_close(forward.logits()[nodes], expected[nodes], rtol=1e-4, atol=1e-5)


def test_batches_are_as_large_as_the_limit_allows() -> None:
    graph, model = random_graph(300, 900, seed=1), own("torch_geometric.nn.GraphSAGE", SMALL)
    forward, edges = BatchedForward(graph, model, 50), list[int]()
    model.register_forward_pre_hook(lambda _, inputs: edges.append(len(inputs[1][0].indices)))
    forward.logits()
    assert len(edges) > 1
    assert max(edges) <= 8 * 50
    assert np.mean(edges) > 4 * 50


def test_a_node_that_reads_the_whole_graph_is_not_evaluated_alone() -> None:
    """Every node is two hops from every other: smaller batches save nothing."""
    graph = graph_of([(0, node) for node in range(1, 40)], 40, F, C)
    model, passes = own("torch_geometric.nn.GraphSAGE", SMALL), list[int]()
    model.register_forward_pre_hook(lambda _, inputs: passes.append(len(inputs[0])))
    forward = BatchedForward(graph, model, 1)
    torch.testing.assert_close(forward.logits(), whole_graph_logits(model.eval(), graph), rtol=1e-4, atol=1e-5)
    assert passes == [40]


def test_a_graph_in_one_batch_is_recalibrated_exactly() -> None:
    graph, model = random_graph(60, 90, seed=2), own("tests.helpers.own_models.Jumping", {})
    forward = BatchedForward(graph, model, 60, recalibrate=True)
    logits = forward.logits()
    norm = model.module.norm
    assert isinstance(norm, nn.BatchNorm1d)
    with torch.no_grad():
        entering = model.module.first(torch.from_numpy(graph.features), edge_index(graph))  # type: ignore[operator]
    torch.testing.assert_close(norm.running_mean, entering.mean(dim=0))
    torch.testing.assert_close(norm.running_var, entering.var(dim=0))
    assert torch.equal(logits, forward.logits(recalibrate=False))
    norm.get_buffer("running_mean").add_(1)
    assert not torch.equal(logits, forward.logits(recalibrate=False))
    assert torch.equal(logits, forward.logits())


def test_batches_of_a_larger_graph_are_recalibrated_the_same_way_every_time() -> None:
    graph = random_graph(300, 900, seed=1)
    first, again = (own("tests.helpers.own_models.Jumping", {}) for _ in range(2))
    logits = BatchedForward(graph, first, 40, recalibrate=True).logits()
    forward = BatchedForward(graph, again, 40, recalibrate=True)
    forward.logits()
    assert torch.equal(logits, forward.logits())
    exact = BatchedForward(graph, own("tests.helpers.own_models.Jumping", {}), 300, recalibrate=True).logits()
    assert not torch.equal(logits, exact)
    assert (logits - exact).abs().mean() < 0.2 * exact.abs().mean()
