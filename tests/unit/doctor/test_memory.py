"""Predicted memory: layers, steps and evaluation, summed by hand."""

import pytest

from llcg_dist.config.compose import load_config
from llcg_dist.doctor.batches import BatchSize
from llcg_dist.doctor.memory import evaluation_bytes, model_bytes, step_bytes
from llcg_dist.models.registry import structure
from llcg_dist.models.structure import LAYER_KINDS, Layer
from tests.helpers.models import staged_model


@pytest.mark.parametrize("name", ["sage", "gcn", "mlp", "gat", "appnp", "resgcn", "skip_sage"])
def test_layers_are_those_of_the_model_that_is_built(name: str) -> None:
    config = load_config([f"model={name}", "model.hidden=256", "model.layers=3"]).model
    layers, model = structure(config).layers(100, 256, 50), staged_model(config, 100, 50)
    assert sum(layer.kind.reads_neighbours for layer in layers) == model.depth
    assert [layer.kind.reads_neighbours for layer in layers] == [stage.reads_neighbours for stage in model.each_stage()]
    parameters = 4 * sum(weight.numel() for weight in model.parameters())
    # Weights, gradients, two moments, and the copies: eight in all. APPNP's propagation has no weights of its own.
    assert 8 * parameters <= model_bytes(layers) * 1.1
    assert name == "appnp" or model_bytes(layers) <= 8 * parameters * 1.1


def test_a_step_by_hand() -> None:
    gcn = [Layer(LAYER_KINDS["G"], 10, 4), Layer(LAYER_KINDS["G"], 4, 2)]
    batch = BatchSize(rows=[100, 20, 5], edges=[300, 40])
    first = 100 * 10 * 4 + 300 * 24 + 100 * 16 + 100 * 4 * 4 + 20 * 4 * 4 * 2
    second = 20 * 4 * 4 * 4 + 40 * 24 + 20 * 16 + 20 * 2 * 4 + 5 * 2 * 4 * 2
    assert step_bytes(gcn, batch) == first + second
    attention = [Layer(LAYER_KINDS["A"], 10, 4), Layer(LAYER_KINDS["A"], 4, 2)]
    assert step_bytes(attention, batch) - step_bytes(gcn, batch) == 300 * 4 * 4 * 2 + 40 * 2 * 4 * 2


def test_evaluation_is_bounded_by_its_chunks_and_states_on_disk_cost_nothing() -> None:
    layers = [Layer(LAYER_KINDS["S"], 100, 64), Layer(LAYER_KINDS["S"], 64, 8)]
    million = 1_000_000
    at_once, small = (
        evaluation_bytes(layers, million, 8 * million, chunk, on_disk=False) for chunk in (million, 1_000)
    )
    states = million * (64 + 64) * 4  # features that become narrower are mapped before they are added up
    assert at_once > small >= states
    assert small < 1.2 * states
    assert evaluation_bytes(layers, million, 8 * million, 1_000, on_disk=True) < 0.1 * states
    halved = evaluation_bytes(layers, million, 8 * million, 1_000, on_disk=False, state_bytes=2)
    assert 0.5 * states <= halved < 0.6 * states
