"""Attention against dense matrices."""

import torch
from torch import nn

from llcg_dist.config.model import ModelConfig
from tests.helpers.graphs import hub_graph
from tests.helpers.models import adjacency, conv_weights, drawn_model, full_graph_logits


@torch.no_grad()
def test_gat_is_a_softmax_over_the_neighbours_and_the_node_itself() -> None:
    graph = hub_graph()
    n, classes = graph.num_nodes, graph.num_classes
    model = drawn_model(ModelConfig(name="gat", layers=1, heads=2), graph)
    w = conv_weights(model.each_stage()[0].layer)
    heads = (torch.from_numpy(graph.features) @ w["lin.weight"].T).view(n, 2, classes)
    not_read = adjacency(graph) + torch.eye(n) == 0
    expected = torch.zeros(n, classes)
    for head in range(2):
        h = heads[:, head]
        to, frm = h @ w["att_dst"][0, head], h @ w["att_src"][0, head]
        attention = nn.functional.leaky_relu(to[:, None] + frm[None, :], 0.2)
        expected += attention.masked_fill(not_read, float("-inf")).softmax(dim=1) @ h / 2
    torch.testing.assert_close(full_graph_logits(model, graph), expected + w["bias"])
