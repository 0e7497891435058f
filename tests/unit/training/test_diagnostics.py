"""What is measured on graphs where the answer is known: zero where it must be, and growing with the cut."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from llcg_dist.algorithms.registry import build_algorithm
from llcg_dist.config.compose import load_config
from llcg_dist.data.csr import undirected_csr
from llcg_dist.data.graph import TRAIN, Graph, induced_subgraph
from llcg_dist.data.rows import Array
from llcg_dist.data.views import GraphView
from llcg_dist.models.stages import GraphModel
from llcg_dist.sampling.block import full_graph_block
from llcg_dist.training.diagnostics import Diagnostics, LocalGradient
from llcg_dist.training.flat_vector import flatten
from llcg_dist.training.loss import loss
from tests.helpers.graphs import community_graph
from tests.helpers.models import staged_model

BASE = community_graph(90)
N = BASE.num_nodes
ALL_NEIGHBOURS = ["sampling.fanout=-1"]


def two_parts(cross: int = 0, other_seed: int | None = None) -> tuple[Graph, Array]:
    """A graph twice (or beside another one), with so many edges between the two; the parts are the two."""
    other = BASE if other_seed is None else community_graph(90, seed=other_seed)
    src = np.concatenate([np.repeat(np.arange(N), np.diff(g.indptr)) + shift for g, shift in ((BASE, 0), (other, N))])
    dst = np.concatenate([BASE.indices, other.indices + N])
    rng = np.random.default_rng(0)
    new = rng.integers(N, size=(2, 1000))[:, :cross]
    indptr, indices = undirected_csr(np.concatenate([src, new[0]]), np.concatenate([dst, new[1] + N]), 2 * N)
    rows: dict[str, Any] = {
        name: np.concatenate([getattr(BASE, name), getattr(other, name)]) for name in ("features", "labels", "split")
    }
    return replace(BASE, indptr=indptr, indices=indices, **rows), np.repeat([0, 1], N)


def measured(graph: Graph, assignment: Array, *overrides: str, steps: Sequence[int] = (8,) * 200) -> dict[str, Any]:
    settings = ["diagnostics.every=1", "diagnostics.repeats=3", "diagnostics.hessian_steps=1", "model.hidden=8"]
    config = load_config([*settings, "train.local_batch_size=16", "sampling.fanout=2", *overrides])
    torch.manual_seed(0)
    model = staged_model(config.model, graph.num_features, graph.num_classes)
    theta = flatten(model)
    parts = [induced_subgraph(graph, np.flatnonzero(assignment == part)) for part in np.unique(assignment)]
    sent = [LocalGradient(config, GraphView(part)).at(theta) for part in parts]
    server = Diagnostics(config, build_algorithm(config).data_access, graph, assignment)
    return server.measure(theta, 3, sent, steps)


MODELS = [["model=sage"], ["model=gcn"], ["model=gat"], ["model=appnp"], ["model=mlp"]]


@pytest.mark.parametrize("model", MODELS, ids=lambda overrides: overrides[0])
def test_no_cut_edges_means_no_kappa_a_and_equal_parts_no_kappa_x(model: list[str]) -> None:
    row = measured(*two_parts(), *model)
    assert row["kappa_a_sq"] < 1e-10 * row["g_global"]
    assert row["kappa_x_sq"] < 1e-10 * row["g_global"]
    assert row["kappa_sq"] == row["kappa_a_sq"] + row["kappa_x_sq"]
    assert row["g_local"] == pytest.approx(row["g_global"], rel=1e-4)
    assert row["g_global"] > 1e-4


def start_model(*overrides: str) -> GraphModel:
    """The model at which `measured` measures."""
    torch.manual_seed(0)
    return staged_model(load_config(["model.hidden=8", *overrides]).model, BASE.num_features, BASE.num_classes).eval()


def plain_gradient(model: GraphModel, graph: Graph, nodes: Array) -> Tensor:
    """Of the mean loss over `nodes`, from one pass over all of `graph`."""
    logits = model(torch.from_numpy(graph.features), [full_graph_block(graph)] * model.depth)
    value = loss(logits[nodes], torch.from_numpy(graph.labels[nodes]), graph.task)
    return torch.cat([g.reshape(-1) for g in torch.autograd.grad(value, list(model.parameters()))]).double()


def squared_norm(vector: Tensor) -> float:
    return vector.square().sum().item()


@pytest.mark.parametrize("overrides", MODELS[:4], ids=lambda overrides: overrides[0])
def test_kappas_and_gradients_are_those_of_plain_passes(overrides: list[str]) -> None:
    """κ_A: what a part's gradient loses with its cut edges; κ_X: how far it is from the gradient over all parts."""
    graph, _ = two_parts(50, other_seed=1)
    assignment = (np.arange(2 * N) >= 60).astype(np.int64)  # uneven, and across the communities
    model = start_model(*overrides)
    local, full = [], []
    for part in (0, 1):
        own = np.flatnonzero(assignment == part)
        alone = induced_subgraph(graph, own)
        local.append(plain_gradient(model, alone, alone.nodes_in(TRAIN)))
        full.append(plain_gradient(model, graph, own[graph.split[own] == TRAIN]))
    everywhere = plain_gradient(model, graph, graph.nodes_in(TRAIN))
    row = measured(graph, assignment, *overrides)
    kappa_a = max(squared_norm(one - other) for one, other in zip(local, full, strict=True))
    kappa_x = max(squared_norm(one - everywhere) for one in full)
    expected = {"kappa_a_sq": kappa_a, "kappa_x_sq": kappa_x, "kappa_sq": kappa_a + kappa_x}
    expected |= {"g_global": squared_norm(everywhere), "g_local": squared_norm((local[0] + local[1]) / 2)}
    assert {name: row[name] for name in expected} == pytest.approx(expected, rel=1e-3)


def test_variances_are_those_of_sampling_theory() -> None:
    """Batches of B of n nodes, all their neighbours: the variance of the nodes' gradients by (n − B) / (B (n − 1))."""
    graph, parts = two_parts()  # the same graph twice: both machines have the same variance
    training, model = BASE.nodes_in(TRAIN), start_model()
    each = torch.stack([plain_gradient(model, BASE, np.array([node])) for node in training])
    of_nodes = squared_norm(each - each.mean(dim=0)) / len(each)
    assert len(training) == 45
    settings = [*ALL_NEIGHBOURS, "sampling.server_fanout=-1", "diagnostics.repeats=30"]
    row = measured(graph, parts, *settings, "train.local_batch_size=15", "train.server_batch_size=10")
    local, server = of_nodes * (45 - 15) / (15 * 44), of_nodes * (90 - 10) / (10 * 89)
    assert row["sigma_var_sq"] == pytest.approx(local, abs=5 * row["sigma_var_sq_error"])
    assert row["sigma_global_sq"] == pytest.approx(server, abs=5 * row["sigma_global_sq_error"])
    assert row["sigma_var_sq_error"] < 0.1 * local
    assert row["sigma_global_sq_error"] < 0.1 * server


def test_different_parts_without_cut_edges_have_kappa_x_alone() -> None:
    row = measured(*two_parts(other_seed=1))
    assert row["kappa_a_sq"] < 1e-10 * row["g_global"]
    assert row["kappa_x_sq"] > 1e-2 * row["g_global"]


def test_kappa_a_rises_with_the_cut() -> None:
    found = [measured(*two_parts(cross))["kappa_a_sq"] for cross in (0, 10, 50, 250)]
    assert found == sorted(found)
    assert found[1] > 1e4 * found[0]
    assert found[3] > 4 * found[1]


@pytest.mark.parametrize("model", MODELS[:4], ids=lambda overrides: overrides[0])
def test_all_neighbours_mean_no_bias(model: list[str]) -> None:
    graph, parts = two_parts(50)
    row = measured(graph, parts, *model, *ALL_NEIGHBOURS)
    assert row["sigma_bias_sq"] < 1e-10 * row["g_global"]
    assert row["sigma_bias_sq_error"] < 1e-5 * row["g_global"]
    assert row["sigma_var_sq"] > 1e-2 * row["g_global"]
    sampled = measured(graph, parts, *model)
    assert sampled["sigma_bias_sq"] + sampled["sigma_bias_sq_error"] > 1e-6 * row["g_global"]


def test_sampling_two_neighbours_has_a_bias_that_stands_out_of_its_error() -> None:
    row = measured(*two_parts(50), "diagnostics.repeats=12", "sampling.fanout=1")
    assert row["sigma_bias_sq"] > 2 * row["sigma_bias_sq_error"] > 0


def test_full_batches_have_no_variance_and_small_ones_more() -> None:
    graph, parts = two_parts(50)
    full, half, few = (measured(graph, parts, *ALL_NEIGHBOURS, f"train.local_batch_size={b}") for b in (1000, 30, 8))
    assert full["sigma_var_sq"] < 1e-10 * full["g_global"]
    assert 1e-3 * full["g_global"] < half["sigma_var_sq"] < few["sigma_var_sq"]


def test_the_server_s_noise_falls_with_its_batch_and_ends_at_zero() -> None:
    graph, parts = two_parts(50)
    few, many, everything = (measured(graph, parts, f"train.server_batch_size={b}") for b in (8, 40, 1000))
    assert few["sigma_global_sq"] > many["sigma_global_sq"] > 1e-3 * few["g_global"]
    assert everything["sigma_global_sq"] < 1e-10 * few["g_global"]


def test_chunks_do_not_matter() -> None:
    graph, parts = two_parts(50, other_seed=1)
    at_once, chunked = measured(graph, parts), measured(graph, parts, "diagnostics.chunk=7")
    for name in ("kappa_a_sq", "kappa_x_sq", "g_local", "g_global", "lipschitz"):
        assert chunked[name] == pytest.approx(at_once[name], rel=1e-3), name


def test_the_full_gradient_is_that_of_all_training_nodes_whatever_the_parts_sizes() -> None:
    graph, _ = two_parts(50, other_seed=1)
    uneven = (np.arange(2 * N) >= 20).astype(np.int64)
    even, odd = measured(graph, np.repeat([0, 1], N)), measured(graph, uneven)
    assert odd["g_global"] == pytest.approx(even["g_global"], rel=1e-4)


def test_smoothness_matches_the_exact_hessian() -> None:
    """A GCN without ReLU kinks between (one layer): sparse products there have second derivatives."""
    graph, parts = two_parts(50)
    row = measured(graph, parts, "model=arch", "model.arch=G", "diagnostics.hessian_steps=40")
    config = load_config(["model=arch", "model.arch=G"])
    torch.manual_seed(0)
    model = staged_model(config.model, graph.num_features, graph.num_classes)
    nodes = torch.from_numpy(graph.nodes_in(TRAIN))
    logits = model(torch.from_numpy(graph.features), [full_graph_block(graph)])[nodes]
    value = loss(logits, torch.from_numpy(graph.labels)[nodes], graph.task)
    parameters = list(model.parameters())
    gradient = torch.cat([g.reshape(-1) for g in torch.autograd.grad(value, parameters, create_graph=True)])
    rows = [torch.cat([h.reshape(-1) for h in torch.autograd.grad(g, parameters, retain_graph=True)]) for g in gradient]
    assert row["lipschitz"] == pytest.approx(torch.linalg.eigvalsh(torch.stack(rows)).abs().max().item(), rel=0.02)


def test_short_runs_are_told_that_the_theorems_are_silent() -> None:
    long = measured(*two_parts(50))
    assert long["theorem2_S"] is not None
    assert "theorem_note" not in long
    graph, parts = two_parts(50)
    short = measured(replace(graph, features=10 * graph.features), parts, steps=[1, 1, 1])
    assert short["theorem2_S"] is None
    assert short["theorem_note"].startswith("the formulas do not apply: T = 6 steps")


def test_the_same_numbers_again() -> None:
    first, second = (measured(*two_parts(20)) for _ in range(2))
    assert {k: v for k, v in first.items() if "seconds" not in k} == {
        k: v for k, v in second.items() if "seconds" not in k
    }
