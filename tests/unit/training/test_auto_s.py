"""S=auto: a rule whose numbers can be followed by hand, and gradients with and without the cut."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from llcg_dist.config.model import ModelConfig
from llcg_dist.data.cut import degrees_within_parts
from llcg_dist.data.graph import TRAIN, Graph, induced_subgraph
from llcg_dist.data.views import GraphView
from llcg_dist.models import build_model
from llcg_dist.sampling.neighbor import NeighborSampler
from llcg_dist.training.auto_s import EMA_DECAY, AutoS, CutGradients, Terms, divergence
from tests.helpers.graphs import community_graph

GRAPH = community_graph(90)
PARTS = (np.arange(90) >= 45).astype(np.int32)
UNCUT = Terms(g_global=1.0, g_local=1.0, kappa_a=0.0, divergence=0.0)


def chosen(terms: Terms, mean_steps: float, most: int = 16) -> int:
    return AutoS(most, mean_steps).choose(terms)[0]


def test_alignment_by_hand() -> None:
    """Gradients (2, 0) and (1, 0); (1, 1) and (1, 0); (1, 0) and (0, 1); (1, 0) and (−1, 0); and noise."""
    assert replace(UNCUT, g_global=4.0, kappa_a=1.0).alignment == 1.0
    assert replace(UNCUT, g_global=2.0, kappa_a=1.0).alignment == pytest.approx(0.5**0.5)
    assert replace(UNCUT, kappa_a=2.0).alignment == 0.0
    assert replace(UNCUT, kappa_a=4.0).alignment == 0.0
    assert replace(UNCUT, g_global=-0.1, kappa_a=0.1).alignment == 0.0
    assert replace(UNCUT, g_global=-0.1, g_local=-0.1).alignment == 1.0  # no cut: the same, however noisy


def test_machines_that_nearly_agree_need_one_step_and_one_machine_none() -> None:
    """Parts without cut edges."""
    assert [chosen(replace(UNCUT, divergence=share), 20) for share in (-0.1, 0.0, 0.01)] == [0, 0, 1]


def test_a_step_for_every_local_step_that_is_lost() -> None:
    # u = 0.5 · 0.75 over the cut, or 0.25 and 0.5 where the machines part
    assert chosen(replace(UNCUT, kappa_a=1.0, divergence=0.25), 8) == (1 - 0.375) * 8
    assert chosen(replace(UNCUT, divergence=0.75), 8) == 0.75 * 8
    assert chosen(replace(UNCUT, divergence=0.5), 8) == 0.5 * 8
    assert [chosen(replace(UNCUT, divergence=share), 8) for share in (1.0, 1.3)] == [8, 8]
    assert chosen(replace(UNCUT, divergence=1.0), 40) == 16


def test_steps_are_whole_and_never_more_than_are_lost() -> None:
    assert [chosen(replace(UNCUT, divergence=share), 8) for share in (0.05, 0.24, 0.26, 0.99)] == [1, 1, 2, 7]


@given(st.tuples(*[st.floats(-1, 10)] * 4), st.floats(0, 1), st.floats(1, 100), st.integers(1, 50))
def test_never_more_than_the_local_steps_or_the_most_and_more_where_machines_part(
    numbers: tuple[float, float, float, float], further: float, mean_steps: float, most: int
) -> None:
    terms = Terms(*numbers)
    found = chosen(terms, mean_steps, most)
    assert 0 <= found <= chosen(replace(terms, divergence=terms.divergence + further), mean_steps, most)
    assert found <= min(mean_steps, most)


def test_one_round_does_not_turn_the_choice_around() -> None:
    rule = AutoS(16, mean_steps=10)
    found = [rule.choose(replace(UNCUT, divergence=share))[1]["auto_s_useful"] for share in (1.0, 0.0, 0.0)]
    assert found == pytest.approx([0.0, 1 - EMA_DECAY, 1 - EMA_DECAY**2])


def test_a_rule_goes_on_from_its_state_exactly() -> None:
    undisturbed, first, second = (AutoS(16, mean_steps=6) for _ in range(3))

    def round_of(rule: AutoS, r: int) -> tuple[int, dict]:
        return rule.choose(Terms(1.0 + 0.1 * r, 0.5, 0.2 * r, 1.0 - 0.1 * r))

    expected = [round_of(undisturbed, r) for r in range(8)]
    found = [round_of(first, r) for r in range(4)]
    second.load_state(first.state())
    assert found + [round_of(second, r) for r in range(4, 8)] == expected


def test_divergence_by_hand() -> None:
    start, learned = torch.tensor([1.0, 1.0, 9.0]), torch.tensor([True, True, False])

    def of(*ways: tuple[float, float], weights: tuple[float, ...] = (1.0, 1.0)) -> float:
        updates = [start + torch.tensor([*way, 5.0 * i]) for i, way in enumerate(ways)]
        return divergence(start, updates, weights, learned)

    assert of((2, 0), (2, 0)) == 0.0
    assert of((2, 0), (0, 2)) == 1.0
    assert of((2, 0), (2, 0), (2, 0), weights=(1, 2, 5)) == pytest.approx(0.0)
    # The average is (1.5, 0.5), its square 2.5; the product of the two ways 2 · 1 + 0 · 1.
    assert of((2, 0), (1, 1)) == pytest.approx(1 - 2 / 2.5)
    # With weights 3 and 1 it is (1.75, 0.25), its square 3.125.
    assert of((2, 0), (1, 1), weights=(3, 1)) == pytest.approx(1 - 2 / 3.125)
    assert of((3, 0), (-1, 0)) == 4.0
    assert of((2, 1), weights=(1.0,)) == 0.0
    assert of((0, 0), (0, 0)) == 0.0


def gradients(graph: Graph, arch: str) -> CutGradients:
    torch.manual_seed(0)
    model = build_model(ModelConfig(arch=arch, hidden=8), graph.num_features, graph.num_classes)
    sampler = NeighborSampler(graph, [-1] * model.depth)
    return CutGradients(model, GraphView(graph), sampler, PARTS, degrees_within_parts(graph, PARTS))


@pytest.mark.parametrize("arch", ["SS", "GG"])
def test_without_cut_edges_the_gradient_is_that_of_the_parts(arch: str) -> None:
    """Batches of one part: dropping cut edges is the same as never having seen the other part."""
    nodes = np.flatnonzero((PARTS == 0) & (GRAPH.split == TRAIN))
    full, cut = gradients(GRAPH, arch)._full_and_cut(nodes, 0)
    own = induced_subgraph(GRAPH, np.flatnonzero(PARTS == 0))
    alone = CutGradients(
        gradients(GRAPH, arch)._model,
        GraphView(own),
        NeighborSampler(own, [-1, -1]),
        PARTS[:45],
        degrees_within_parts(own, PARTS[:45]),
    )
    assert torch.allclose(cut, alone._full_and_cut(nodes, 0)[0], rtol=1e-4, atol=1e-6)
    assert not torch.allclose(full, cut, rtol=1e-3)


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
