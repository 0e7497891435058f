"""Evaluation takes the full graph, leaves what was learned alone, and can set BatchNorm's statistics on the way."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from llcg_dist.config.model import ModelConfig
from llcg_dist.data.graph import TEST, TRAIN, VAL, Graph
from llcg_dist.data.rows import Array
from llcg_dist.models.stages import GraphModel
from llcg_dist.sampling.block import Block, full_graph_block
from llcg_dist.training.evaluation import EvaluationSettings, Evaluator
from llcg_dist.training.flat_vector import flatten, load_flat
from llcg_dist.training.layerwise import FullGraphForward
from llcg_dist.training.loss import loss
from llcg_dist.training.metrics import score
from tests.helpers.graphs import community_graph, dense, dense_gcn, graph_of, random_graph
from tests.helpers.models import batchnorms, full_graph_logits, recalibrated_logits, running_statistics, staged_model

GRAPH = community_graph()
FEATURES = torch.from_numpy(GRAPH.features)
CHUNK = 50
"""Three chunks of the graph's 120 nodes."""


def new_model(arch: str, seed: int = 0, graph: Graph = GRAPH) -> GraphModel:
    """Every float drawn, statistics too (variances positive)."""
    torch.manual_seed(seed)
    model = staged_model(ModelConfig(arch=arch, hidden=8, dropout=0.0), graph.num_features, graph.num_classes)
    load_flat(model, flatten(model) + 0.3 * torch.rand(flatten(model).numel()))
    return model


def blocks(model: GraphModel) -> list[Block]:
    return [full_graph_block(GRAPH)] * model.depth


def evaluator(arch: str, batchnorm_stats: str = "recalibrate", graph: Graph = GRAPH) -> Evaluator:
    return Evaluator(graph, new_model(arch, seed=99, graph=graph), EvaluationSettings(batchnorm_stats, CHUNK))


def reference(arch: str, model: GraphModel) -> tuple[Array, list[tuple[Array, Array]]]:
    """Logits in float64 with dense matrices, and mean and variance (of n−1) at every B."""

    def weights(module: nn.Module) -> dict[str, Array]:
        return {name: tensor.double().numpy() for name, tensor in module.state_dict().items()}

    adjacency = dense(GRAPH)
    mean_of_neighbours = adjacency / np.maximum(adjacency.sum(axis=1, keepdims=True), 1)
    norms = iter(batchnorms(model))
    layers = iter([stage.layer for stage in model.each_stage() if stage.layer is not None])
    x, hidden, statistics = GRAPH.features.astype(np.float64), False, []
    for letter in arch:
        if letter == "B":
            w = weights(next(norms))
            mean, variance = x.mean(axis=0), x.var(axis=0, ddof=1)
            statistics.append((mean, variance))
            x = (x - mean) / np.sqrt(variance + 1e-5) * w.get("weight", 1) + w.get("bias", 0)
            continue
        x = np.maximum(x, 0) if hidden else x
        hidden = True
        w = weights(next(layers))
        if letter == "L":
            x = x @ w["weight"].T + w["bias"]
        elif letter == "G":
            x = dense_gcn(GRAPH, "symmetric") @ x @ w["conv.lin.weight"].T + w["conv.bias"]
        else:
            near, own = mean_of_neighbours @ x @ w["conv.lin_l.weight"].T, x @ w["conv.lin_r.weight"].T
            x = near + own + w["conv.lin_l.bias"] + w["conv.lin_r.bias"]
    assert next(norms, None) is next(layers, None) is None
    return x, statistics


@pytest.mark.parametrize("arch", ["BSBS", "SBSBS", "GBGBG", "BSBSBL", "LBL", "SB", "GBBL"])
def test_recalibrated_statistics_are_the_full_graphs(arch: str) -> None:
    model, finished = new_model(arch), new_model(arch, seed=3)
    finished.load_state_dict(evaluator(arch).finished_model(flatten(model)))
    _, statistics = reference(arch, model)
    assert statistics
    for norm, (mean, variance) in zip(batchnorms(finished), statistics, strict=True):
        found_mean, found_variance = running_statistics(norm)
        np.testing.assert_allclose(found_mean.numpy(), mean, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(found_variance.numpy(), variance, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("arch", ["SBSBS", "GBGBG", "BSBSBL", "SGL"])
def test_scores_are_those_of_the_reference(arch: str) -> None:
    model = new_model(arch)
    found = evaluator(arch).evaluate(flatten(model))
    logits, _ = reference(arch, model)
    right = logits.argmax(axis=1) == GRAPH.labels
    assert found.val == pytest.approx(right[GRAPH.split == VAL].mean())
    assert found.test == pytest.approx(right[GRAPH.split == TEST].mean())
    train = GRAPH.nodes_in(TRAIN)
    expected = functional.cross_entropy(torch.from_numpy(logits[train]), torch.from_numpy(GRAPH.labels[train]))
    assert found.train_loss == pytest.approx(expected.item(), rel=1e-4)


def test_evaluation_equals_a_training_pass_but_for_the_variances_divisor() -> None:
    """Train mode divides by n, running statistics by n−1: normalised values differ by sqrt((n−1)/n)."""
    model = new_model("SB")
    (norm,) = batchnorms(model)
    with torch.no_grad():
        norm.weight.fill_(1)
        norm.bias.zero_()
    theta = flatten(model)
    finished = new_model("SB", seed=3)
    finished.load_state_dict(evaluator("SB").finished_model(theta))
    n = GRAPH.num_nodes
    with torch.no_grad():
        evaluated = finished.eval()(FEATURES, blocks(model))
        trained = model.train()(FEATURES, blocks(model))
    torch.testing.assert_close(evaluated, trained * ((n - 1) / n) ** 0.5, rtol=1e-4, atol=1e-5)
    # The statistics that this training pass leaves with momentum 1 are the recalibrated ones.
    load_flat(model, theta)
    norm.momentum = 1.0
    model.train()(FEATURES, blocks(model))
    (recalibrated,) = batchnorms(finished)
    torch.testing.assert_close(norm.running_mean, recalibrated.running_mean)
    torch.testing.assert_close(norm.running_var, recalibrated.running_var)


def parameters_of(theta: Tensor, arch: str) -> dict[str, Tensor]:
    model = new_model(arch)
    load_flat(model, theta)
    return dict(model.named_parameters())


@pytest.mark.parametrize("batchnorm_stats", ["average", "recalibrate"])
def test_what_was_learned_is_left_alone(batchnorm_stats: str) -> None:
    theta = flatten(new_model("SBSBS"))
    given = theta.clone()
    one = evaluator("SBSBS", batchnorm_stats)
    first = one.evaluate(theta)
    finished = one.finished_model(theta)
    assert torch.equal(theta, given)
    for name, parameter in parameters_of(given, "SBSBS").items():
        assert torch.equal(finished[name], parameter), name
    one.evaluate(flatten(new_model("SBSBS", seed=1)))
    assert one.evaluate(theta) == first  # whatever was evaluated in between


def chooser(graph: Graph = GRAPH) -> Evaluator:
    model = new_model("SBS", seed=99, graph=graph)
    return Evaluator(graph, model, EvaluationSettings("best", CHUNK, kinds=("average", "recalibrate")))


def test_the_best_kind_of_statistics_is_by_validation_score() -> None:
    one, chosen = chooser(), set()
    for seed in range(20):
        theta = flatten(new_model("SBS", seed=seed))
        evaluation = one.evaluate(theta)
        alone = {kind: evaluator("SBS", kind) for kind in ("average", "recalibrate")}
        assert evaluation.of_kind == {kind: of_kind.evaluate(theta).of_kind[kind] for kind, of_kind in alone.items()}
        assert evaluation.val == max(scores.val or 0 for scores in evaluation.of_kind.values())
        assert (evaluation.val, evaluation.test) == (
            evaluation.of_kind[evaluation.kind].val,
            evaluation.of_kind[evaluation.kind].test,
        )
        same = alone[evaluation.kind].finished_model(theta)
        assert all(torch.equal(tensor, same[name]) for name, tensor in one.finished_model(theta).items())
        chosen.add(evaluation.kind)
    assert chosen == {"average", "recalibrate"}


def test_where_nothing_can_choose_the_statistics_are_the_graphs_own() -> None:
    graph = graph_of([(0, 1), (1, 2)], 3, split=np.array([TRAIN, TRAIN, TEST], np.int8))
    evaluation = chooser(graph).evaluate(flatten(new_model("SBS", graph=graph)))
    assert (evaluation.val, evaluation.kind) == (None, "recalibrate")


def test_averaged_statistics_are_used_as_sent() -> None:
    theta = flatten(new_model("SBS"))
    one = evaluator("SBS", "average")
    model = new_model("SBS", seed=2)
    model.load_state_dict(one.finished_model(theta))
    assert torch.equal(flatten(model), theta)
    with torch.no_grad():
        logits = model.eval()(FEATURES, blocks(model))
    test = GRAPH.nodes_in(TEST)
    assert one.evaluate(theta).test == pytest.approx((logits.argmax(1).numpy() == GRAPH.labels)[test].mean())


def test_finished_model_is_of_the_theta_asked_for() -> None:
    one = evaluator("SBS")
    first, second = flatten(new_model("SBS", seed=1)), flatten(new_model("SBS", seed=2))
    alone = evaluator("SBS").finished_model(first)
    one.evaluate(second)
    for name, tensor in one.finished_model(first).items():
        assert torch.equal(tensor, alone[name]), name


def test_state_dict_is_a_copy_of_the_model_evaluated_last() -> None:
    one = evaluator("SBS")
    one.evaluate(flatten(new_model("SBS", seed=1)))
    state = one.state_dict()
    kept = {name: tensor.clone() for name, tensor in state.items()}
    one.evaluate(flatten(new_model("SBS", seed=2)))
    assert all(torch.equal(state[name], kept[name]) for name in kept)
    assert not torch.equal(
        one.state_dict()["stages.0.layer.conv.lin_l.weight"], kept["stages.0.layer.conv.lin_l.weight"]
    )


def test_a_split_without_nodes_has_no_score() -> None:
    graph = graph_of([(0, 1), (1, 2)], 3, split=np.array([TRAIN, TRAIN, VAL], np.int8))
    found = evaluator("SBS", graph=graph).evaluate(flatten(new_model("SBS", graph=graph)))
    assert found.test is None
    assert found.val in (0.0, 1.0)


@pytest.mark.parametrize("chunk", [7, 1000])
@pytest.mark.parametrize("stats", ["average", "recalibrate"])
def test_the_evaluator_scores_the_labelled_nodes(chunk: int, stats: str) -> None:
    graph = random_graph(50, 120, seed=4, labelled=0.4)
    theta = flatten(new_model("BSBS", seed=5, graph=graph))
    one = Evaluator(graph, new_model("BSBS", graph=graph), EvaluationSettings(stats, chunk))
    scores = one.evaluate(theta)
    model = new_model("BSBS", graph=graph)
    load_flat(model, theta)
    logits = (recalibrated_logits if stats == "recalibrate" else full_graph_logits)(model.eval(), graph)
    labels = torch.from_numpy(graph.labels)
    assert scores.val == score(logits[graph.split == VAL], labels[graph.split == VAL], "accuracy")
    assert scores.test == score(logits[graph.split == TEST], labels[graph.split == TEST], "accuracy")
    train = graph.split == TRAIN
    assert scores.train_loss == pytest.approx(loss(logits[train], labels[train], "multiclass").item(), rel=1e-5)
    torch.testing.assert_close(one.finished_model(theta), model.state_dict(), rtol=1e-5, atol=1e-6)


def test_an_evaluation_has_its_own_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only while logits are computed: the correction, whose bits depend on them, has those of before."""
    before, used = torch.get_num_threads(), list[int]()

    def logits(self: FullGraphForward, recalibrate: bool = True) -> Tensor:
        used.append(torch.get_num_threads())
        return torch.zeros(GRAPH.num_nodes, GRAPH.num_classes)

    monkeypatch.setattr(FullGraphForward, "logits", logits)
    for threads in (None, 3):
        one = Evaluator(GRAPH, new_model("SBS"), EvaluationSettings("average", CHUNK, threads=threads))
        one.evaluate(flatten(new_model("SBS")))
        one.class_results(new_model("SBS").state_dict())
        assert torch.get_num_threads() == before
    assert used == [before, before, 3, 3]
