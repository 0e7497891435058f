"""Layers against dense matrices, and the same from blocks with local and with global columns."""

import pytest
import torch
from torch import nn

from llcg_dist.config.model import GcnNorm, ModelConfig
from llcg_dist.models.appnp import Propagate
from llcg_dist.models.layers import Gat, Gcn, Sage
from llcg_dist.models.stages import BlockLayer
from llcg_dist.sampling.block import block_with_global_columns, block_with_local_columns, degrees, full_graph_block
from tests.helpers.graphs import graph_of, hub_graph, random_graph
from tests.helpers.models import conv_weights, drawn_model, full_graph_logits, gcn_adjacency


@torch.no_grad()
def test_sage_has_a_bias_on_both_maps_and_adds_them() -> None:
    layer = Sage(5, 3)
    w = conv_weights(layer)
    shapes = {name: tuple(tensor.shape) for name, tensor in w.items()}
    assert shapes == {"lin_l.weight": (3, 5), "lin_l.bias": (3,), "lin_r.weight": (3, 5), "lin_r.bias": (3,)}
    triangle = graph_of([(0, 1), (1, 2), (2, 0)], 4, 5, 3)
    x = torch.from_numpy(triangle.features)
    own = x @ w["lin_r.weight"].T + w["lin_r.bias"]
    mean = torch.stack([(x[1] + x[2]) / 2, (x[0] + x[2]) / 2, (x[0] + x[1]) / 2, torch.zeros(5)])
    expected = own + mean @ w["lin_l.weight"].T + w["lin_l.bias"]
    torch.testing.assert_close(layer(x, full_graph_block(triangle)), expected)


@torch.no_grad()
def test_gcn_has_one_bias_after_the_sum() -> None:
    layer = Gcn(5, 3, "symmetric")
    w = conv_weights(layer)
    assert sum(tensor.numel() for tensor in w.values()) == 5 * 3 + 3
    nn.init.constant_(w["bias"], 2.0)
    alone = graph_of([], 1, 5, 3)
    x = torch.from_numpy(alone.features)
    torch.testing.assert_close(layer(x, full_graph_block(alone)), x @ w["lin.weight"].T + 2.0)


@pytest.mark.parametrize("norm", ["symmetric", "row"])
@torch.no_grad()
def test_gcn_multiplies_with_the_normalised_matrix(norm: str) -> None:
    graph = hub_graph()
    model = drawn_model(ModelConfig(name="gcn", layers=1, gcn_norm=GcnNorm(norm)), graph)
    w = conv_weights(model.each_stage()[0].layer)
    expected = gcn_adjacency(graph, norm) @ torch.from_numpy(graph.features) @ w["lin.weight"].T + w["bias"]
    torch.testing.assert_close(full_graph_logits(model, graph), expected)


WIDTH_IN, WIDTH_OUT = 6, 4
LAYERS: dict[str, BlockLayer] = {
    "sage": Sage(WIDTH_IN, WIDTH_OUT),
    "gcn": Gcn(WIDTH_IN, WIDTH_OUT, "symmetric"),
    "gcn by row": Gcn(WIDTH_IN, WIDTH_OUT, "row"),
    "gat": Gat(WIDTH_IN, WIDTH_OUT, heads=2, average_heads=True),
    "propagate": Propagate(0.2, "symmetric", first=False, last=False),
}


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("some", [False, True])
@torch.no_grad()
def test_global_and_local_columns_give_the_same(name: str, some: bool) -> None:
    graph = random_graph(40, 150, seed=3, num_features=WIDTH_IN)
    x, degree, layer = torch.from_numpy(graph.features), degrees(graph), LAYERS[name]
    wanted = torch.arange(11) % 3 > 0 if some else None
    columns, local = block_with_local_columns(graph, degree, 9, 20, wanted)
    in_place = block_with_global_columns(graph, degree, 9, 20, wanted)
    assert in_place.dst_rows(torch.arange(40)).tolist() == local.dst_rows(columns).tolist()
    torch.testing.assert_close(layer(x, in_place), layer(x[columns], local))
