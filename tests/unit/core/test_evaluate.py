"""Judging takes the whole graph, leaves what was learned alone, and can set BatchNorm's statistics on the way."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from llcg_dist.config import ModelConfig
from llcg_dist.core.evaluate import Evaluator, recalibrated
from llcg_dist.core.parameters import flatten, load_flat
from llcg_dist.data.graph import TEST, TRAIN, VAL, Array, Graph
from llcg_dist.models import build_model
from llcg_dist.models.arch import ArchModel
from llcg_dist.sampling import whole_graph
from tests.unit.graphs import community_graph, dense, dense_gcn, graph_of

GRAPH = community_graph()
FEATURES = torch.from_numpy(GRAPH.features)


def new_model(arch: str, seed: int = 0, graph: Graph = GRAPH) -> ArchModel:
    """Every float drawn, statistics too (variances positive)."""
    torch.manual_seed(seed)
    model = build_model(ModelConfig(arch=arch, hidden=8, dropout=0.0), graph.num_features, graph.num_classes)
    load_flat(model, flatten(model) + 0.3 * torch.rand(flatten(model).numel()))
    return model


def blocks(model: ArchModel, graph: Graph = GRAPH) -> list:
    return [whole_graph(graph)] * model.depth


def evaluator(arch: str, batchnorm_stats: str = "recalibrate", graph: Graph = GRAPH) -> Evaluator:
    model = new_model(arch, seed=99, graph=graph)
    return Evaluator(graph, model, blocks(model, graph), batchnorm_stats)


def reference(model: ArchModel) -> tuple[Array, dict[str, tuple[Array, Array]]]:
    """Logits in float64 with dense matrices, and mean and variance (of n−1) at every B."""
    weights = {name: tensor.double().numpy() for name, tensor in model.state_dict().items()}
    adjacency = dense(GRAPH)
    mean_of_neighbours = adjacency / np.maximum(adjacency.sum(axis=1, keepdims=True), 1)
    x, hidden, statistics = GRAPH.features.astype(np.float64), False, {}
    for i, letter in enumerate(model.arch):
        if letter == "B":
            mean, variance = x.mean(axis=0), x.var(axis=0, ddof=1)
            statistics[f"layers.{i}"] = mean, variance
            x = (x - mean) / np.sqrt(variance + 1e-5)
            x = x * weights.get(f"layers.{i}.weight", 1) + weights.get(f"layers.{i}.bias", 0)
            continue
        x = np.maximum(x, 0) if hidden else x
        hidden = True
        if letter == "L":
            x = x @ weights[f"layers.{i}.weight"].T + weights[f"layers.{i}.bias"]
        elif letter == "G":
            x = dense_gcn(GRAPH, "symmetric") @ x @ weights[f"layers.{i}.conv.lin.weight"].T
            x = x + weights[f"layers.{i}.conv.bias"]
        else:
            near = mean_of_neighbours @ x @ weights[f"layers.{i}.conv.lin_l.weight"].T
            own = x @ weights[f"layers.{i}.conv.lin_r.weight"].T
            x = near + own + weights[f"layers.{i}.conv.lin_l.bias"] + weights[f"layers.{i}.conv.lin_r.bias"]
    return x, statistics


@pytest.mark.parametrize("arch", ["BSBS", "SBSBS", "GBGBG", "BSBSBL", "LBL"])
def test_recalibrated_statistics_are_the_whole_graphs(arch: str) -> None:
    model = new_model(arch)
    finished = evaluator(arch).finished_model(flatten(model))
    _, statistics = reference(model)
    assert statistics
    for name, (mean, variance) in statistics.items():
        np.testing.assert_allclose(finished[f"{name}.running_mean"], mean, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(finished[f"{name}.running_var"], variance, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("arch", ["SBSBS", "GBGBG", "BSBSBL", "SGL"])
def test_scores_are_those_of_the_reference(arch: str) -> None:
    model = new_model(arch)
    found = evaluator(arch).judge(flatten(model))
    logits, _ = reference(model)
    right = logits.argmax(axis=1) == GRAPH.labels
    assert found.val == pytest.approx(right[GRAPH.split == VAL].mean())
    assert found.test == pytest.approx(right[GRAPH.split == TEST].mean())
    train = GRAPH.nodes_in(TRAIN)
    expected = functional.cross_entropy(torch.from_numpy(logits[train]), torch.from_numpy(GRAPH.labels[train]))
    assert found.train_loss == pytest.approx(expected.item(), rel=1e-4)


def test_judging_equals_a_training_pass_but_for_the_variances_divisor() -> None:
    """Train mode divides by n, running statistics by n−1: normalised values differ by sqrt((n−1)/n)."""
    model = new_model("SB")
    with torch.no_grad():
        model.layers[1].weight.fill_(1)
        model.layers[1].bias.zero_()
    theta = flatten(model)
    finished = new_model("SB", seed=3)
    finished.load_state_dict(evaluator("SB").finished_model(theta))
    n = GRAPH.num_nodes
    with torch.no_grad():
        judged = finished.eval()(FEATURES, blocks(model))
        trained = model.train()(FEATURES, blocks(model))
    torch.testing.assert_close(judged, trained * ((n - 1) / n) ** 0.5, rtol=1e-4, atol=1e-5)
    # The statistics that this training pass leaves with momentum 1 are the recalibrated ones.
    load_flat(model, theta)
    model.layers[1].momentum = 1.0
    model.train()(FEATURES, blocks(model))
    torch.testing.assert_close(model.layers[1].running_mean, finished.layers[1].running_mean)
    torch.testing.assert_close(model.layers[1].running_var, finished.layers[1].running_var)


def parameters_of(theta: Tensor, arch: str) -> dict[str, Tensor]:
    model = new_model(arch)
    load_flat(model, theta)
    return dict(model.named_parameters())


@pytest.mark.parametrize("batchnorm_stats", ["average", "recalibrate"])
def test_what_was_learned_is_left_alone(batchnorm_stats: str) -> None:
    theta = flatten(new_model("SBSBS"))
    given = theta.clone()
    one = evaluator("SBSBS", batchnorm_stats)
    first = one.judge(theta)
    finished = one.finished_model(theta)
    assert torch.equal(theta, given)
    for name, parameter in parameters_of(given, "SBSBS").items():
        assert torch.equal(finished[name], parameter), name
    one.judge(flatten(new_model("SBSBS", seed=1)))
    assert one.judge(theta) == first  # whatever was judged in between


def test_averaged_statistics_are_used_as_sent() -> None:
    theta = flatten(new_model("SBS"))
    one = evaluator("SBS", "average")
    model = new_model("SBS", seed=2)
    model.load_state_dict(one.finished_model(theta))
    assert torch.equal(flatten(model), theta)
    with torch.no_grad():
        logits = model.eval()(FEATURES, blocks(model))
    test = GRAPH.nodes_in(TEST)
    assert one.judge(theta).test == pytest.approx((logits.argmax(1).numpy() == GRAPH.labels)[test].mean())


def test_finished_model_is_of_the_theta_asked_for() -> None:
    one = evaluator("SBS")
    first, second = flatten(new_model("SBS", seed=1)), flatten(new_model("SBS", seed=2))
    alone = evaluator("SBS").finished_model(first)
    one.judge(second)
    for name, tensor in one.finished_model(first).items():
        assert torch.equal(tensor, alone[name]), name


def test_state_dict_is_a_copy_of_the_model_judged_last() -> None:
    one = evaluator("SBS")
    one.judge(flatten(new_model("SBS", seed=1)))
    state = one.state_dict()
    kept = {name: tensor.clone() for name, tensor in state.items()}
    one.judge(flatten(new_model("SBS", seed=2)))
    assert all(torch.equal(state[name], kept[name]) for name in kept)


def test_recalibration_ends_with_its_block() -> None:
    layer = nn.BatchNorm1d(2).eval()
    with recalibrated(layer):
        layer(torch.tensor([[1.0, 0.0], [3.0, 4.0]]))
    assert layer.running_mean.tolist() == [2.0, 2.0]
    assert layer.running_var.tolist() == [2.0, 8.0]
    assert layer.num_batches_tracked.item() == 0
    layer(torch.full((5, 2), 7.0))
    assert layer.running_mean.tolist() == [2.0, 2.0]


def test_a_split_without_nodes_has_no_score() -> None:
    graph = graph_of([(0, 1), (1, 2)], 3, split=np.array([TRAIN, TRAIN, VAL], np.int8))
    found = evaluator("SBS", graph=graph).judge(flatten(new_model("SBS", graph=graph)))
    assert found.test is None
    assert found.val in (0.0, 1.0)
