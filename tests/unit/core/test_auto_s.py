"""S=auto: a rule whose numbers can be followed by hand, and gradients with and without the cut."""

import math

import numpy as np
import pytest
import torch

from llcg_dist.core.auto_s import FASTEST, WORTH, AutoS, CutGradients, Terms, divergence
from llcg_dist.data.graph import TRAIN, Graph, degrees_within_parts, induced_subgraph
from llcg_dist.data.views import GraphView
from llcg_dist.models import build_model
from llcg_dist.sampling import NeighborSampler
from llcg_dist.schema import ModelConfig
from tests.unit.graphs import community_graph

GRAPH = community_graph(90)
PARTS = (np.arange(90) >= 45).astype(np.int32)
PLENTY = Terms(g_global=1.0, g_local=1.0, kappa_a=1.0, divergence=100.0)


def run_of(payoff: float, rounds: int, terms: Terms = PLENTY, most: int = 16) -> list[int]:
    """S of rounds in which every step takes off the share `payoff` of the loss."""
    rule, chosen = AutoS(most), []
    for _ in range(rounds):
        steps, _ = rule.choose(terms, local_steps=8)
        rule.learn(1.0, 1.0 - payoff * steps, steps)
        chosen.append(steps)
    return chosen


def test_theorem_2_bounds_the_steps() -> None:
    # 10 local steps times (0.5 + 2 · 0.25) over 4
    assert Terms(g_global=4.0, g_local=0.25, kappa_a=0.5, divergence=2.0).bound(10) == 2.5
    assert Terms(g_global=4.0, g_local=0.0, kappa_a=-0.1, divergence=2.0).bound(10) == 0.0
    assert Terms(g_global=-0.1, g_local=0.25, kappa_a=0.5, divergence=2.0).bound(10) == math.inf


def test_steps_that_pay_become_more_until_the_most_and_no_faster_than_allowed() -> None:
    found = run_of(10 * WORTH, 20, most=12)
    assert found == [min(12, math.floor(FASTEST**r + 0.5)) for r in range(20)]


def test_steps_that_do_not_pay_fall_to_one() -> None:
    rule = AutoS(16)
    rule.load_state({"wanted": 12.0, "payoff": None, "terms": None})
    chosen = []
    for _ in range(16):
        steps, _ = rule.choose(PLENTY, local_steps=8)
        rule.learn(1.0, 1.0 + 0.001 * steps, steps)
        chosen.append(steps)
    assert chosen == sorted(chosen, reverse=True)
    assert (chosen[0], chosen[-1]) == (12, 1)


def test_nothing_to_correct_means_no_steps() -> None:
    """One machine, or parts without cut edges that all go the same way."""
    agreed = Terms(g_global=1.0, g_local=1.0, kappa_a=0.0, divergence=0.0)
    assert run_of(10 * WORTH, 5, agreed) == [0] * 5


def test_the_bound_holds_what_is_wanted_back() -> None:
    few = Terms(g_global=1.0, g_local=0.0, kappa_a=3 / 8, divergence=1.0)
    assert max(run_of(10 * WORTH, 30, few)) == 3


def test_a_rule_goes_on_from_its_state_exactly() -> None:
    whole, first, second = AutoS(16), AutoS(16), AutoS(16)

    def round_of(rule: AutoS, r: int) -> tuple[int, dict]:
        terms = Terms(1.0 + 0.1 * r, 0.5, 0.2 * r, 3.0 - 0.1 * r)
        chosen = rule.choose(terms, local_steps=3 + r)
        rule.learn(1.0, 1.0 - 0.03 / (1 + r), chosen[0])
        return chosen

    expected = [round_of(whole, r) for r in range(8)]
    found = [round_of(first, r) for r in range(4)]
    second.load_state(first.state())
    assert found + [round_of(second, r) for r in range(4, 8)] == expected


def test_divergence_by_hand() -> None:
    start, learned = torch.tensor([1.0, 1.0, 9.0]), torch.tensor([True, True, False])
    updates = [torch.tensor([3.0, 1.0, 0.0]), torch.tensor([1.0, 3.0, 5.0])]
    # The ways are (2, 0) and (0, 2), their mean (1, 1): both are 2 from it in the square, which is its own square too.
    assert divergence(start, updates, learned) == 1.0
    assert divergence(start, updates[:1], learned) == 0.0
    assert divergence(start, [start, start], learned) == 0.0


def gradients(graph: Graph, arch: str) -> CutGradients:
    torch.manual_seed(0)
    model = build_model(ModelConfig(arch=arch, hidden=8), graph.num_features, graph.num_classes)
    sampler = NeighborSampler(graph, [-1] * model.depth)
    return CutGradients(model, GraphView(graph), sampler, PARTS, degrees_within_parts(graph, PARTS))


@pytest.mark.parametrize("arch", ["SS", "GG"])
def test_without_cut_edges_the_gradient_is_that_of_the_parts(arch: str) -> None:
    """Batches of one part: dropping cut edges is the same as never having seen the other part."""
    nodes = np.flatnonzero((PARTS == 0) & (GRAPH.split == TRAIN))
    whole, cut = gradients(GRAPH, arch)._both(nodes, 0)
    own = induced_subgraph(GRAPH, np.flatnonzero(PARTS == 0))
    alone = CutGradients(
        gradients(GRAPH, arch)._model,
        GraphView(own),
        NeighborSampler(own, [-1, -1]),
        PARTS[:45],
        degrees_within_parts(own, PARTS[:45]),
    )
    assert torch.allclose(cut, alone._both(nodes, 0)[0], rtol=1e-4, atol=1e-6)
    assert not torch.allclose(whole, cut, rtol=1e-3)


def test_no_cut_edges_no_kappa() -> None:
    one_part = np.zeros(90, np.int32)
    torch.manual_seed(0)
    model = build_model(ModelConfig(arch="SBS", hidden=8), GRAPH.num_features, GRAPH.num_classes)
    degree = degrees_within_parts(GRAPH, one_part)
    assert degree.tolist() == np.diff(GRAPH.indptr).tolist()
    same = CutGradients(model, GraphView(GRAPH), NeighborSampler(GRAPH, [-1, -1]), one_part, degree)
    g_global, g_local, kappa = same.products(GRAPH.nodes_in(TRAIN), 0)
    assert g_global == g_local
    assert kappa == 0.0
