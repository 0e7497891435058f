"""All models: sampled blocks agree with the full graph, one vector holds the parameters, training learns."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from llcg_dist.config.model import GcnNorm, ModelConfig, Norm
from llcg_dist.data.feature_rows import LazyRows
from llcg_dist.models.products import SummedRows
from llcg_dist.models.registry import structure
from llcg_dist.sampling.block import full_graph_block
from llcg_dist.sampling.neighbor import NeighborSampler
from llcg_dist.training.flat_vector import contiguous_parameters, flatten
from tests.helpers.graphs import hub_graph
from tests.helpers.models import drawn_model, full_graph_logits
from tests.helpers.run_files import model_state, rows, summary
from tests.helpers.training import train_in_process

GRAPH = hub_graph()
NAMES = ("sage", "gcn", "mlp", "gat", "appnp", "resgcn", "skip_sage", "arch")
MODELS = {
    "sage": ModelConfig(name="sage", layers=3),
    "gcn": ModelConfig(name="gcn", layers=3),
    "gcn_row": ModelConfig(name="gcn", layers=2, gcn_norm=GcnNorm.row),
    "mlp": ModelConfig(name="mlp", layers=3),
    "gat": ModelConfig(name="gat", layers=3, input_norm=True),
    "gat_heads": ModelConfig(name="gat", layers=2, heads=4),
    "appnp": ModelConfig(name="appnp", layers=3),
    "appnp_one_step": ModelConfig(name="appnp", layers=1, norm=Norm.none),
    "resgcn": ModelConfig(name="resgcn", layers=3, input_norm=True),
    "skip_sage": ModelConfig(name="skip_sage", layers=2),
    "BSBSBL": ModelConfig(name="arch", arch="BSBSBL"),
    "LGSB": ModelConfig(name="arch", arch="LGSB"),
    "BBSL": ModelConfig(name="arch", arch="BBSL"),
}


@pytest.mark.parametrize("name", MODELS)
def test_all_neighbours_sampled_give_the_logits_of_the_full_graph(name: str) -> None:
    model = drawn_model(MODELS[name], GRAPH)
    assert model.depth == structure(MODELS[name]).depth
    seeds = np.random.default_rng(0).permutation(GRAPH.num_nodes)[:20]
    batch = NeighborSampler(GRAPH, [-1] * model.depth).sample(seeds, seed=0)
    assert model.depth == 0 or len(batch.nodes) > len(seeds)
    with torch.no_grad():
        sampled = model(torch.from_numpy(GRAPH.features)[batch.nodes], batch.blocks)
    torch.testing.assert_close(sampled, full_graph_logits(model, GRAPH)[seeds])


@pytest.mark.parametrize("name", MODELS)
def test_a_fanout_changes_the_logits_of_models_that_read_neighbours(name: str) -> None:
    """Else the test above could not fail."""
    model = drawn_model(MODELS[name], GRAPH)
    batch = NeighborSampler(GRAPH, [1] * model.depth).sample(np.arange(GRAPH.num_nodes), seed=0)
    with torch.no_grad():
        sampled = model(torch.from_numpy(GRAPH.features)[batch.nodes], batch.blocks)
    same = torch.allclose(sampled, full_graph_logits(model, GRAPH), atol=1e-3)
    assert same == (model.depth == 0)


@pytest.mark.parametrize("name", MODELS)
def test_what_is_prepared_ahead_of_a_step_changes_no_bit_of_it(name: str) -> None:
    """The features with what needs no weight done to them, such as the first layer's sums over neighbours."""
    table = torch.from_numpy(GRAPH.features)
    gradients = []
    for ahead in (False, True):
        model = drawn_model(MODELS[name], GRAPH).train()
        batch = NeighborSampler(GRAPH, [3] * model.depth).sample(np.arange(40), seed=0)
        rows = LazyRows(table, batch.nodes)
        torch.manual_seed(1)
        logits = model(model.prepared(rows, batch.blocks) if ahead else rows, batch.blocks)
        logits.square().mean().backward()
        gradients.append([logits, *(p.grad for p in model.parameters() if p.grad is not None)])
    assert len(gradients[0]) > 1
    assert all(torch.equal(plain, prepared) for plain, prepared in zip(*gradients, strict=True))


def test_a_first_layer_that_adds_up_neighbours_finds_their_sum_made_ahead() -> None:
    """Else drawing ahead would do it twice."""
    config = ModelConfig(name="sage", layers=2, hidden=8)
    model = drawn_model(config, GRAPH)
    batch = NeighborSampler(GRAPH, [3, 3]).sample(np.arange(40), seed=0)
    rows = LazyRows(torch.from_numpy(GRAPH.features), batch.nodes)
    prepared = model.prepared(rows, batch.blocks)
    assert isinstance(prepared, SummedRows)
    assert prepared.nbytes > rows.nbytes
    changed = replace(prepared, product=prepared.product + 1)
    with torch.no_grad():
        assert torch.equal(model(prepared, batch.blocks), model(rows, batch.blocks))
        assert not torch.equal(model(changed, batch.blocks), model(rows, batch.blocks))


@pytest.mark.parametrize("name", MODELS)
def test_a_model_in_one_vector_computes_and_learns_as_before(name: str) -> None:
    apart, together = drawn_model(MODELS[name], GRAPH), drawn_model(MODELS[name], GRAPH)
    vector = contiguous_parameters(together)
    blocks = [full_graph_block(GRAPH)] * apart.depth
    for model in (apart, together):
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1, fused=True)
        for _ in range(2):
            torch.manual_seed(1)
            optimizer.zero_grad()
            model.train()(torch.from_numpy(GRAPH.features), blocks).square().mean().backward()
            optimizer.step()
    torch.testing.assert_close(flatten(together), flatten(apart))
    assert torch.equal(flatten(together), vector)


@pytest.mark.parametrize(("model", "algorithm"), [*((model, "llcg") for model in NAMES), ("sage", "psgd_pa")])
def test_every_model_trains(model: str, algorithm: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp(f"{model}_{algorithm}")
    parts = tmp_path_factory.getbasetemp() / "partitions"  # the same graph for all of them
    places = [f"run_dir={folder}/run", f"partition.root={parts}"]
    chosen = [f"model={model}", f"algorithm={algorithm}", "model.hidden=32", "dataset.signal=0.5", "algorithm.K=8"]
    small = ["experiment=tiny", "partition=random", "num_rounds=6", "evaluate.chunk=200"]
    train_in_process(*small, *chosen, *places)
    recorded, ended = rows(folder / "run"), summary(folder / "run")
    assert len(recorded) == 6
    assert recorded[-1]["train_loss"] < 0.8 * np.log(4)  # four classes: guessing costs log 4
    assert ended["best_val_score"] > 0.6
    held = sum(tensor.numel() * tensor.element_size() for tensor in model_state(folder / "run").values())
    unused = 4 * 2 * (32 * 32 + 32) if model == "appnp" else 0
    assert ended["paper_mb_per_round"] == pytest.approx(2 * (held + unused) / 1e6)
