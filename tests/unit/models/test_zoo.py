"""Every model: its formula, its agreement between sampled and whole-graph blocks, its training, its settings."""

import json

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from llcg_dist.config.compose import load_config
from llcg_dist.config.facts import message_passing_layers
from llcg_dist.config.schema import ModelConfig
from llcg_dist.data.csr import undirected_csr
from llcg_dist.data.graph import TRAIN, Graph
from llcg_dist.errors import UserError
from llcg_dist.models import build_model
from llcg_dist.models.stages import GraphModel
from llcg_dist.sampling.block import block_of_rows, degrees, whole_graph
from llcg_dist.sampling.neighbor import NeighborSampler
from llcg_dist.train import Rank, run
from llcg_dist.training.flat_vector import contiguous_parameters, flatten
from llcg_dist.training.layerwise import WholeGraphForward

N, F, C = 60, 7, 5

MODELS = {
    "sage": ModelConfig(name="sage", layers=3),
    "gcn": ModelConfig(name="gcn", layers=3),
    "gcn_row": ModelConfig(name="gcn", layers=2, gcn_norm="row"),
    "mlp": ModelConfig(name="mlp", layers=3),
    "gat": ModelConfig(name="gat", layers=3, input_norm=True),
    "gat_heads": ModelConfig(name="gat", layers=2, heads=4),
    "appnp": ModelConfig(name="appnp", layers=3),
    "appnp_one_step": ModelConfig(name="appnp", layers=1, norm="none"),
    "resgcn": ModelConfig(name="resgcn", layers=3, input_norm=True),
    "skip_sage": ModelConfig(name="skip_sage", layers=2),
    "BSBSBL": ModelConfig(name="arch", arch="BSBSBL"),
    "LGSB": ModelConfig(name="arch", arch="LGSB"),
    "BBSL": ModelConfig(name="arch", arch="BBSL"),
}


@pytest.fixture(scope="module")
def graph() -> Graph:
    """Random, with hubs and with nodes that have no neighbour at all."""
    rng = np.random.default_rng(3)
    src, dst = rng.integers(N - 4, size=150), (rng.random(150) ** 3 * (N - 4)).astype(np.int64)
    indptr, indices = undirected_csr(src, dst, N)
    features = rng.standard_normal((N, F), dtype=np.float32) * 2 + 1
    return Graph(indptr, indices, features, rng.integers(C, size=N), np.full(N, TRAIN, np.int8), C).validate("test")


def trained_looking(config: ModelConfig, graph: Graph) -> GraphModel:
    """In eval mode, no weight at its trivial initial value, statistics of this graph."""
    torch.manual_seed(0)
    config = ModelConfig(**{**vars(config), "hidden": 8})
    model = build_model(config, graph.num_features, graph.num_classes)
    for name, parameter in model.named_parameters():
        if parameter.ndim == 1:  # biases and BatchNorm's affine weights
            nn.init.uniform_(parameter, 0.5, 1.5) if "norm.weight" in name else nn.init.uniform_(parameter, -0.5, 0.5)
    WholeGraphForward(graph, model, chunk=N, recalibrate=True).logits()
    return model.eval()


@torch.no_grad()
def whole_graph_logits(model: GraphModel, graph: Graph) -> Tensor:
    return model(torch.from_numpy(graph.features), [whole_graph(graph)] * model.depth)


@pytest.mark.parametrize("name", MODELS)
def test_all_neighbours_sampled_give_the_logits_of_the_whole_graph(name: str, graph: Graph) -> None:
    model = trained_looking(MODELS[name], graph)
    assert model.depth == message_passing_layers(MODELS[name])
    seeds = np.random.default_rng(0).permutation(N)[:20]
    batch = NeighborSampler(graph, [-1] * model.depth).sample(seeds, seed=0)
    assert model.depth == 0 or len(batch.nodes) > len(seeds)
    with torch.no_grad():
        sampled = model(torch.from_numpy(graph.features)[batch.nodes], batch.blocks)
    torch.testing.assert_close(sampled, whole_graph_logits(model, graph)[seeds])


@pytest.mark.parametrize("name", MODELS)
def test_a_fanout_changes_the_logits_of_models_that_read_neighbours(name: str, graph: Graph) -> None:
    """Else the test above could not fail."""
    model = trained_looking(MODELS[name], graph)
    batch = NeighborSampler(graph, [1] * model.depth).sample(np.arange(N), seed=0)
    with torch.no_grad():
        sampled = model(torch.from_numpy(graph.features)[batch.nodes], batch.blocks)
    same = torch.allclose(sampled, whole_graph_logits(model, graph), atol=1e-3)
    assert same == (model.depth == 0)


def dense(graph: Graph) -> Tensor:
    adjacency = torch.zeros(N, N)
    adjacency[np.repeat(np.arange(N), np.diff(graph.indptr)), graph.indices] = 1.0
    return adjacency


def normalised(graph: Graph) -> Tensor:
    with_self = dense(graph) + torch.eye(N)
    scale = with_self.sum(dim=1).rsqrt()
    return scale[:, None] * with_self * scale[None, :]


def sage(layer: nn.Module, x: Tensor, graph: Graph) -> Tensor:
    adjacency = dense(graph)
    mean = adjacency @ x / adjacency.sum(dim=1, keepdim=True).clamp(min=1)
    w = layer.state_dict()
    neighbours = mean @ w["conv.lin_l.weight"].T + w["conv.lin_l.bias"]
    return neighbours + x @ w["conv.lin_r.weight"].T + w["conv.lin_r.bias"]


@pytest.mark.parametrize("name", MODELS)
def test_a_model_in_one_vector_computes_and_learns_as_before(name: str, graph: Graph) -> None:
    apart, together = trained_looking(MODELS[name], graph), trained_looking(MODELS[name], graph)
    vector = contiguous_parameters(together)
    blocks = [whole_graph(graph)] * apart.depth
    for model in (apart, together):
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1, fused=True)
        for _ in range(2):
            torch.manual_seed(1)
            optimizer.zero_grad()
            model.train()(torch.from_numpy(graph.features), blocks).square().mean().backward()
            optimizer.step()
    torch.testing.assert_close(flatten(together), flatten(apart))
    assert torch.equal(flatten(together), vector)


@torch.no_grad()
def test_gat_is_a_softmax_over_the_neighbours_and_the_node_itself(graph: Graph) -> None:
    config = ModelConfig(name="gat", layers=1, heads=2)
    model = trained_looking(config, graph)
    w = model.each_stage()[0].layer.conv.state_dict()
    x = torch.from_numpy(graph.features)
    heads = (x @ w["lin.weight"].T).view(N, 2, C)
    expected = torch.zeros(N, C)
    for head in range(2):
        h = heads[:, head]
        to, frm = h @ w["att_dst"][0, head], h @ w["att_src"][0, head]
        attention = nn.functional.leaky_relu(to[:, None] + frm[None, :], 0.2)
        attention = attention.masked_fill(dense(graph) + torch.eye(N) == 0, float("-inf")).softmax(dim=1)
        expected += attention @ h / 2
    torch.testing.assert_close(whole_graph_logits(model, graph), expected + w["bias"])


@torch.no_grad()
def test_appnp_returns_to_its_first_state_at_every_step(graph: Graph) -> None:
    model = trained_looking(ModelConfig(name="appnp", layers=3, teleport=0.3), graph)
    stages = model.each_stage()
    first = stages[0](torch.from_numpy(graph.features)).relu()
    h = first
    for _ in range(3):
        h = 0.3 * first + 0.7 * normalised(graph) @ h
    torch.testing.assert_close(whole_graph_logits(model, graph), stages[-1].layer(h))


@torch.no_grad()
def test_resgcn_adds_each_convolution_to_what_went_in(graph: Graph) -> None:
    model = trained_looking(ModelConfig(name="resgcn", layers=2), graph)
    stages = model.each_stage()
    h = stages[0](torch.from_numpy(graph.features))
    for stage in stages[1:3]:
        w = stage.layer.conv.state_dict()
        h = h + normalised(graph) @ stage.norm(h).relu() @ w["lin.weight"].T + w["bias"]
    torch.testing.assert_close(whole_graph_logits(model, graph), stages[3].layer(stages[3].norm(h).relu()))


@torch.no_grad()
def test_skip_sage_is_two_sage_layers_and_a_perceptron(graph: Graph) -> None:
    model = trained_looking(MODELS["skip_sage"], graph)
    assert [type(stage.layer).__name__ for stage in model.each_stage()] == ["Sage", "Sage", "Linear", "Linear"]
    one, two, three, four = model.each_stage()
    h = sage(one.layer, torch.from_numpy(graph.features), graph)
    h = sage(two.layer, two.norm(h).relu(), graph)
    h = four.layer(four.norm(three.layer(three.norm(h).relu())).relu())
    torch.testing.assert_close(whole_graph_logits(model, graph), h)


@torch.no_grad()
def test_gcn_with_row_normalisation_averages(graph: Graph) -> None:
    model = trained_looking(ModelConfig(name="gcn", layers=1, gcn_norm="row"), graph)
    w = model.each_stage()[0].layer.conv.state_dict()
    mean = dense(graph) + torch.eye(N)
    mean /= mean.sum(dim=1, keepdim=True)
    expected = mean @ torch.from_numpy(graph.features) @ w["lin.weight"].T + w["bias"]
    torch.testing.assert_close(whole_graph_logits(model, graph), expected)


def test_dropout_is_off_in_evaluation_and_before_the_first_layer(graph: Graph) -> None:
    config = ModelConfig(name="resgcn", dropout=0.5)
    assert [stage.dropout for stage in build_model(config, F, C).each_stage()] == [0.0, 0.5, 0.5, 0.5]
    model = trained_looking(config, graph)
    torch.testing.assert_close(whole_graph_logits(model, graph), whole_graph_logits(model, graph), rtol=0, atol=0)
    model.train()
    assert not torch.equal(whole_graph_logits(model, graph), whole_graph_logits(model, graph))


def test_a_block_of_rows_is_those_rows_of_the_whole_graph(graph: Graph) -> None:
    wanted = torch.arange(20) % 3 != 0
    columns, block = block_of_rows(graph, degrees(graph), 10, 30, wanted)
    rows = torch.arange(10, 30)[wanted]
    assert torch.equal(columns[: block.num_dst].long(), rows)
    found = torch.zeros(block.num_dst, N)
    found[:, columns.long()] = block.mean_adjacency.to_dense()
    ones = dense(graph)[rows]
    assert torch.equal(found, ones * ones.sum(dim=1, keepdim=True).clamp(min=1).reciprocal())
    assert torch.equal(block.degree, dense(graph).sum(dim=1)[columns.long()])


@pytest.mark.parametrize("algorithm", ["llcg", "psgd_pa"])
@pytest.mark.parametrize("model", ["sage", "gcn", "mlp", "gat", "appnp", "resgcn", "skip_sage", "arch"])
def test_every_model_trains(model: str, algorithm: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp(f"{model}_{algorithm}")
    parts = tmp_path_factory.getbasetemp() / "partitions"  # the same graph for all of them
    places = [f"run_dir={folder}/run", f"partition.root={parts}"]
    chosen = [f"model={model}", f"algorithm={algorithm}", "model.hidden=32", "dataset.signal=0.5", "algorithm.K=8"]
    small = ["experiment=tiny", "cluster.backend=loopback", "num_rounds=6", "evaluate.chunk=200"]
    run(load_config([*small, *chosen, *places]), Rank())
    rows = [json.loads(line) for line in (folder / "run" / "metrics.jsonl").read_text().splitlines()]
    summary = json.loads((folder / "run" / "summary.json").read_text())
    assert len(rows) == 6
    assert rows[-1]["train_loss"] < 0.8 * np.log(4)  # four classes: guessing costs log 4
    assert summary["best_val_score"] > 0.6
    state = torch.load(folder / "run" / "model.pt", weights_only=True)
    held = sum(tensor.numel() * tensor.element_size() for tensor in state.values())
    unused = 4 * 2 * (32 * 32 + 32) if model == "appnp" else 0
    assert summary["paper_mb_per_round"] == pytest.approx(2 * (held + unused) / 1e6)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["model=gat", "model.heads=3"], "model.heads=3: must divide model.hidden=64"),
        (["model=gat", "model.arch=SBS"], "model.arch=SBS: model=gat has no arch"),
        (["model=appnp", "model.teleport=1.5"], "model.teleport=1.5: must lie in [0, 1]"),
        (["model=appnp", "sampling.fanout=[5,5,5]"], "one for each of the model's 2 message-passing layers"),
        (["model=arch", "model.arch=SBS", "model.input_norm=true"], "model.input_norm=True: has no effect"),
        (["model=arch", "model.arch=null"], "model.arch: must be set with model=arch"),
        (["model=arch", "model.arch=SXS"], "model.arch=SXS: must be made of"),
        (["model.name=transformer"], "model.name=transformer: must be one of sage"),
        (["evaluate.chunk=0"], "evaluate.chunk=0: must be at least 1"),
    ],
)
def test_settings_that_cannot_work_are_refused_in_one_line(overrides: list[str], message: str) -> None:
    with pytest.raises(UserError) as error:
        load_config(overrides)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
