"""Scores from a sample of the nodes: which nodes, and how far from those of all nodes."""

import numpy as np
import pytest
import torch

from llcg_dist.config.model import ModelConfig
from llcg_dist.data.graph import TEST, TRAIN, VAL
from llcg_dist.training.evaluation import EvaluationSettings, Evaluator
from llcg_dist.training.flat_vector import flatten
from llcg_dist.training.metrics import score
from llcg_dist.training.node_sample import NodeSample, standard_error
from tests.helpers.graphs import community_graph, random_graph
from tests.helpers.models import full_graph_logits, staged_model

GRAPH = community_graph()


def test_a_share_of_every_split_the_same_for_a_seed() -> None:
    whole, half, again, other = (NodeSample(*given).of_splits(GRAPH) for given in ((), (0.5,), (0.5,), (0.5, 1)))
    for split in (TRAIN, VAL, TEST):
        nodes = GRAPH.nodes_in(split)
        assert whole[split].tolist() == nodes.tolist()
        assert len(half[split]) == len(set(half[split].tolist())) == np.ceil(0.5 * len(nodes))
        assert set(half[split].tolist()) < set(nodes.tolist())
        assert half[split].tolist() == again[split].tolist() != other[split].tolist()
    assert all(len(nodes) == 1 for nodes in NodeSample(1e-6).of_splits(GRAPH).values())


@pytest.mark.parametrize("metric", ["accuracy", "roc_auc"])
def test_the_standard_error_is_the_spread_of_repeated_samples(metric: str) -> None:
    generator, share = torch.Generator().manual_seed(0), 0.25
    labels = torch.randint(0, 2, (4000,), generator=generator)
    logits = torch.randn(4000, 2, generator=generator)
    logits[:, 1] += labels
    draws = [torch.randperm(4000, generator=generator)[:1000] for _ in range(100)]
    found = [score(logits[nodes], labels[nodes], metric) for nodes in draws]
    errors = [standard_error(logits[nodes], labels[nodes], metric, share) for nodes in draws[:20]]
    assert all(error is not None for error in errors)
    mean = float(np.mean([error for error in errors if error is not None]))
    assert mean == pytest.approx(float(np.std([value for value in found if value is not None])), rel=0.2)


def test_an_error_that_cannot_be_estimated_is_none() -> None:
    logits, labels = torch.eye(2), torch.tensor([0, 1])
    assert standard_error(logits[:1], labels[:1], "accuracy", 0.5) is None
    assert standard_error(logits, labels, "roc_auc", 0.5) is None  # one node has one class
    assert standard_error(logits, labels, "accuracy", 0.5) == 0


def test_an_evaluator_scores_its_sample_and_the_classes_of_all_nodes() -> None:
    graph = random_graph(200, 300, seed=4, labelled=0.9)
    torch.manual_seed(0)
    models = [staged_model(ModelConfig(arch="SS", hidden=8), graph.num_features, graph.num_classes) for _ in range(2)]
    sample = NodeSample(0.3, seed=2)
    one = Evaluator(graph, models[0], EvaluationSettings("average", 50, sample=sample))
    scores = one.evaluate(flatten(models[1]))
    logits, labels = full_graph_logits(models[1].eval(), graph), torch.from_numpy(graph.labels)
    nodes = sample.of_splits(graph)
    assert scores.val == score(logits[nodes[VAL]], labels[nodes[VAL]], "accuracy")
    assert scores.test == score(logits[nodes[TEST]], labels[nodes[TEST]], "accuracy")
    assert scores.test_error == standard_error(logits[nodes[TEST]], labels[nodes[TEST]], "accuracy", 0.3)
    assert one.class_results(models[1].state_dict())["test"]["nodes"] == len(graph.nodes_in(TEST))
    whole = Evaluator(graph, models[0], EvaluationSettings("average", 50)).evaluate(flatten(models[1]))
    assert whole.val_error is None
