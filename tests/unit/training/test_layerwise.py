"""Full-graph evaluation in chunks: exact, for any chunk, any model; statistics in float64."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from llcg_dist.config.model import ModelConfig
from llcg_dist.errors import UserError
from llcg_dist.models.stages import GraphModel
from llcg_dist.sampling.block import EDGES_PER_NODE
from llcg_dist.training.chunks import chunk_bounds
from llcg_dist.training.flat_vector import flatten
from llcg_dist.training.hidden_states import HiddenStates
from llcg_dist.training.layerwise import FullGraphForward
from llcg_dist.training.threads import using_threads
from tests.helpers.graphs import graph_of, random_graph
from tests.helpers.models import batchnorms, full_graph_logits, recalibrated_logits, running_statistics, staged_model

F, C = 6, 4
NAMES = ["sage", "gcn", "mlp", "gat", "appnp", "resgcn", "skip_sage"]


def random_model(name: str, seed: int = 0) -> GraphModel:
    torch.manual_seed(seed)
    return staged_model(ModelConfig(name=name, layers=2, hidden=8, input_norm=True), F, C)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("recalibrate", [False, True])
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_chunks_of_any_size_give_the_logits_of_one_block(name: str, recalibrate: bool, data: st.DataObject) -> None:
    num_nodes = data.draw(st.integers(10, 60), "nodes")  # with two, BatchNorm blows rounding up a hundredfold
    graph = random_graph(num_nodes, data.draw(st.integers(0, 150), "edges"), data.draw(st.integers(0, 99), "seed"))
    nodes = np.array(data.draw(st.lists(st.booleans(), min_size=num_nodes, max_size=num_nodes), "asked for"))
    nodes[data.draw(st.integers(0, num_nodes - 1))] = True
    model, reference = random_model(name), random_model(name)
    expected = recalibrated_logits(reference, graph) if recalibrate else full_graph_logits(reference.eval(), graph)
    chunk = data.draw(st.integers(1, num_nodes + 5), "chunk")
    logits = FullGraphForward(graph, model, chunk, nodes=nodes, recalibrate=recalibrate).logits()
    torch.testing.assert_close(logits[nodes], expected[nodes], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(flatten(model), flatten(reference), rtol=1e-5, atol=1e-6)


def test_states_that_are_read_in_place_are_prepared_once_and_only_where_they_were_computed(tmp_path: Path) -> None:
    """A state on disk has room for the rows that are needed, and for no more."""
    graph = random_graph(60, 40, seed=6)
    nodes = np.zeros(60, bool)
    nodes[int(np.diff(graph.indptr).argmax())] = True
    model = staged_model(ModelConfig(name="sage", layers=3, hidden=8), F, 8)  # nowhere narrower: neighbours come first
    states: list[Tensor] = []

    class Kept(FullGraphForward):
        def _empty_state(self, width: int, wanted: Tensor | None, precision: str) -> Tensor:
            states.append(torch.full((60, width), -1.0))  # ReLU would show
            return states[-1]

    logits = Kept(graph, model, 5, nodes=nodes).logits()
    torch.testing.assert_close(logits[nodes], full_graph_logits(model.eval(), graph)[nodes])
    computed = [int((state != -1).any(dim=1).sum()) for state in states]
    assert computed[2] == 1 < computed[1] < computed[0] < 60
    wanted = FullGraphForward(graph, model, 5, nodes=nodes)._wanted
    assert computed == [60 if mask is None else int(mask.sum()) for mask in wanted]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 200), min_size=1, max_size=80), st.integers(1, 30))
def test_chunks_cover_the_graph_within_their_limits(degree: list[int], chunk: int) -> None:
    indptr = np.concatenate([[0], np.cumsum(degree)])
    bounds = chunk_bounds(indptr, chunk)
    assert [node for start, stop in bounds for node in range(start, stop)] == list(range(len(degree)))
    for start, stop in bounds:
        edges = indptr[stop] - indptr[start]
        assert stop - start == 1 or (stop - start <= chunk and edges <= EDGES_PER_NODE * chunk)
        # and no chunk is smaller than it must be
        assert stop == len(degree) or stop - start == chunk or indptr[stop + 1] - indptr[start] > EDGES_PER_NODE * chunk


def test_statistics_are_exact_where_float32_sums_are_not() -> None:
    """Features far from zero: the naive E[x^2] - E[x]^2 loses every digit of the variance."""
    graph = random_graph(5000, 100, seed=0)
    graph.features[:] = graph.features * 1e-2 + 1e3
    model = staged_model(ModelConfig(name="arch", arch="BL"), F, C)
    FullGraphForward(graph, model, chunk=64, recalibrate=True).logits()
    (norm,) = batchnorms(model)
    mean, variance = running_statistics(norm)
    exact = graph.features.astype(np.float64)
    np.testing.assert_allclose(mean.numpy(), exact.mean(axis=0), rtol=1e-7)
    np.testing.assert_allclose(variance.numpy(), exact.var(axis=0, ddof=1), rtol=1e-6)


@pytest.mark.parametrize("chunk", [7, 1000])
def test_features_of_half_precision_are_widened_a_chunk_at_a_time(chunk: int) -> None:
    graph = random_graph(50, 120, seed=2)
    halves = dataclasses.replace(graph, features=graph.features.astype(np.float16))
    widened = dataclasses.replace(graph, features=halves.features.astype(np.float32))
    model, reference = random_model("gcn"), random_model("gcn")
    logits = FullGraphForward(halves, model, chunk, recalibrate=True).logits()
    torch.testing.assert_close(logits, recalibrated_logits(reference, widened), rtol=1e-4, atol=1e-5)


def test_states_may_go_to_a_scratch_folder_and_leave_nothing_there(tmp_path: Path) -> None:
    graph = random_graph(50, 120, seed=1)
    model = random_model("appnp")
    logits = FullGraphForward(graph, model, 10, HiddenStates(str(tmp_path / "scratch"))).logits()
    torch.testing.assert_close(logits, full_graph_logits(model.eval(), graph))
    assert list((tmp_path / "scratch").iterdir()) == []


def test_a_scratch_folder_that_cannot_serve_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"evaluate.scratch=.*/file: cannot be written"):
        HiddenStates(str(tmp_path / "file")).empty((3, 2), 3, "float32")
    with pytest.raises(UserError, match=r"4000000.0 GB are needed, .* GB are free"):
        HiddenStates(str(tmp_path)).empty((10**12, 1000), 10**12, "float32")


@pytest.mark.parametrize("chunk", [1, 2])
def test_recalibration_by_hand_ends_with_the_pass(chunk: int) -> None:
    features = np.array([[1, 0], [3, 4]], np.float32)
    graph = graph_of([(0, 1)], 2, features=features)
    model = staged_model(ModelConfig(arch="BS", hidden=8), 2, 2).train()
    (norm,) = batchnorms(model)
    FullGraphForward(graph, model, chunk, recalibrate=True).logits()
    assert [values.tolist() for values in running_statistics(norm)] == [[2.0, 2.0], [2.0, 8.0]]
    assert norm.num_batches_tracked is not None
    assert norm.num_batches_tracked.item() == 0
    # Whatever the model sees next, and a pass that is not asked to recalibrate, leave the statistics alone.
    norm(torch.full((5, 2), 7.0))
    other = graph_of([(0, 1)], 2, features=features + 5)
    FullGraphForward(other, model, chunk).logits()
    assert [values.tolist() for values in running_statistics(norm)] == [[2.0, 2.0], [2.0, 8.0]]


@pytest.mark.parametrize("name", ["sage", "gcn"])
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_rows_that_become_narrower_are_mapped_before_they_are_added_up(name: str, data: st.DataObject) -> None:
    """In the place of the hidden state that they were, chunk by chunk, and where few nodes are asked for, too."""
    graph = random_graph(60, 150, data.draw(st.integers(0, 99), "seed"))
    nodes = np.zeros(60, bool)
    nodes[data.draw(st.lists(st.integers(0, 59), min_size=1), "asked for")] = True
    torch.manual_seed(0)
    model = staged_model(ModelConfig(name=name, layers=3, hidden=5), F, 2)
    mapped = list[bool]()

    class Noted(FullGraphForward):
        def _maps_first(self, *given: Any) -> bool:
            mapped.append(super()._maps_first(*given))
            return mapped[-1]

    chunk, exact = data.draw(st.integers(1, 7), "chunk"), full_graph_logits(model.eval(), graph)
    torch.testing.assert_close(Noted(graph, model, chunk).logits(), exact, rtol=1e-4, atol=1e-5)
    assert mapped == [True, False, True]
    few = Noted(graph, model, chunk, nodes=nodes).logits()
    torch.testing.assert_close(few[nodes], exact[nodes], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("chunk", [7, 60])
def test_states_in_bfloat16(name: str, chunk: int, tmp_path: Path) -> None:
    """Hidden states of half the size, in memory or on disk, and logits in float32 near the exact ones."""
    graph, model = random_graph(60, 150, seed=3), random_model(name)
    kept = list[torch.dtype]()

    class Noted(HiddenStates):
        def empty(
            self, shape: tuple[int, int], rows: int, precision: str, device: torch.device | None = None
        ) -> Tensor:
            state = super().empty(shape, rows, precision, device)
            kept.append(state.dtype)
            return state

    exact = recalibrated_logits(random_model(name), graph)
    in_memory, on_disk = (
        FullGraphForward(graph, model, chunk, Noted(scratch, "bfloat16"), recalibrate=True).logits()
        for scratch in (None, str(tmp_path))
    )
    assert kept.count(torch.float32) == 2  # the logits
    assert kept.count(torch.bfloat16) == len(kept) - 2 >= 2
    assert torch.equal(in_memory, on_disk)
    assert in_memory.dtype == torch.float32
    error = (in_memory - exact).abs().max() / exact.abs().max()
    assert 0 < error < 0.05


@pytest.mark.alone
@pytest.mark.parametrize("name", ["sage", "gcn"])
def test_threads_change_no_bit(name: str) -> None:
    """Every row is summed by one of them."""
    graph, model, logits = random_graph(3000, 60_000, seed=4), random_model(name), list[Tensor]()
    for threads in (1, 2):
        with using_threads(threads):
            assert torch.get_num_threads() == threads
            logits.append(FullGraphForward(graph, model, 1000, recalibrate=True).logits())
    assert torch.equal(*logits)
