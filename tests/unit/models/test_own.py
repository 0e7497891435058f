"""Users' own models: how far they look, what they give on sampled subgraphs, and which are refused."""

from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.nn import GIN, GraphSAGE

from llcg_dist.config.model import ModelConfig
from llcg_dist.errors import UserError
from llcg_dist.models import build_model
from llcg_dist.models.base import Model
from llcg_dist.models.own import EdgeIndexModel
from llcg_dist.models.receptive_field import ReceptiveField, receptive_field
from llcg_dist.models.samplers import all_neighbours_sampler, sampler_for
from llcg_dist.sampling.block import full_graph_block
from llcg_dist.training.flat_vector import contiguous_parameters, flatten, load_flat, statistics_mask
from tests.helpers.graphs import random_graph

F, C = 6, 4
PYG, HELPERS = "torch_geometric.nn", "tests.helpers.own_models"
SMALL = {"hidden_channels": 8, "num_layers": 2}


def own(target: str, layers: int = 2, **options: Any) -> Model:
    torch.manual_seed(0)
    return build_model(ModelConfig(name="own", target=target, layers=layers, options=options), F, C)


def refusal(target: str, **options: Any) -> str:
    with pytest.raises(UserError) as refused:
        own(target, **options)
    assert "\n" not in str(refused.value)
    return str(refused.value)


@pytest.mark.parametrize(
    ("target", "options", "field"),
    [
        (f"{PYG}.GraphSAGE", SMALL, (2, 2)),
        (f"{PYG}.GCN", SMALL, (2, 3)),  # its normalisation needs the degrees of the nodes two hops away
        (f"{PYG}.GCN", SMALL | {"num_layers": 4, "layers": 4}, (4, 5)),
        (f"{PYG}.GAT", SMALL | {"heads": 2}, (2, 2)),
        (f"{PYG}.GIN", SMALL, (2, 2)),
        (f"{HELPERS}.pna", {}, (2, 2)),
        (f"{HELPERS}.GatV2", {"heads": 3}, (2, 2)),
        (f"{HELPERS}.Jumping", {}, (2, 2)),
        (f"{PYG}.MLP", SMALL, (0, 1)),
        (f"{HELPERS}.WholeGraph", {}, (None, None)),
        (f"{PYG}.GraphUNet", {"hidden_channels": 8, "depth": 2}, (None, None)),
    ],
)
def test_how_far_a_module_looks_is_measured(
    target: str, options: dict[str, Any], field: tuple[int | None, int | None]
) -> None:
    model = own(target, **options)
    assert isinstance(model, EdgeIndexModel)
    assert model.receptive_field == ReceptiveField(*field)


def test_closed_relus_hide_nothing_of_how_far_a_module_looks() -> None:
    """The last layer of PyG's GIN has as many hidden channels as classes: two, which some seeds close both."""
    shown = set()
    for seed in range(30):
        torch.manual_seed(seed)
        plain = GIN(F, 8, 3, 2).eval()
        shown.add(receptive_field(plain, F, 16))
        torch.manual_seed(seed)
        config = ModelConfig(name="own", target=f"{PYG}.GIN", layers=3, options=SMALL | {"num_layers": 3})
        model = build_model(config, F, 2)
        assert isinstance(model, EdgeIndexModel)
        assert (model.receptive_field, model.depth, model.trims) == (ReceptiveField(3, 3), 3, True)
        assert torch.equal(flatten(model), flatten(plain))
    assert ReceptiveField(0, 1) in shown, "no seed closed the layer; choose others"


ALL = [
    *(f"{PYG}.{name}" for name in ("GraphSAGE", "GCN", "GAT", "GIN", "MLP")),
    *(f"{HELPERS}.{name}" for name in ("pna", "GatV2", "Jumping")),
]


@pytest.mark.parametrize("target", [*ALL, f"{HELPERS}.OnBlocks"])
def test_all_neighbours_of_a_batch_give_the_output_on_the_whole_graph(target: str) -> None:
    graph = random_graph(60, 90, seed=3)
    model = own(target, **(SMALL if target.startswith(PYG) else {})).eval()
    seeds = np.array([7, 3, 41, 0])
    sample = all_neighbours_sampler(model, graph).sample(seeds, seed=0)
    x = torch.from_numpy(graph.features)
    with torch.no_grad():
        batch = model(x[sample.nodes.long()], sample.blocks)
        block = full_graph_block(graph)
        rows = torch.repeat_interleave(torch.arange(graph.num_nodes), block.indptr.diff())
        edge_index = torch.stack([block.indices.long(), rows])
        whole = model.module(x, edge_index if model.reads_subgraph else [block] * model.depth)  # type: ignore[operator]
    torch.testing.assert_close(batch, whole[seeds], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("target", "options", "trims"),
    [
        (f"{PYG}.GraphSAGE", {"norm": "batch_norm"}, True),
        (f"{PYG}.GAT", {"heads": 2}, True),
        (f"{PYG}.GIN", {}, True),
        (f"{PYG}.GCN", {}, False),  # its degrees would change
        (f"{PYG}.GraphSAGE", {"jk": "cat"}, False),  # its layers would have different rows
        (f"{HELPERS}.GatV2", {}, False),  # does not take them
    ],
)
def test_a_module_that_can_is_told_what_to_leave_out(target: str, options: dict[str, Any], trims: bool) -> None:
    """Training batches, whose neighbours are sampled: the same output, from fewer rows."""
    model = own(target, **(SMALL if target.startswith(PYG) else {}), **options).eval()
    assert isinstance(model, EdgeIndexModel)
    assert model.trims == trims
    sample = sampler_for(model, random_graph(60, 90, seed=3), 2).sample(np.array([7, 3, 41, 0]), seed=5)
    x, computed = torch.randn(len(sample.nodes), F), list[int]()
    model.module.register_forward_hook(lambda _, inputs, output: computed.append(len(output)))
    with torch.no_grad():
        logits = model(x, sample.blocks)
        model.trims = False
        torch.testing.assert_close(model(x, sample.blocks), logits)
    assert computed[1] == len(x)
    assert (computed[0] < len(x)) == trims


def test_weights_load_into_the_class_that_the_user_wrote() -> None:
    model = own(f"{PYG}.GraphSAGE", **SMALL)
    plain = GraphSAGE(F, 8, 2, C)
    plain.load_state_dict(model.state_dict())
    assert dict(model.named_parameters()).keys() == dict(plain.named_parameters()).keys()
    assert not statistics_mask(model).any()
    model.load_state_dict(GraphSAGE(F, 8, 2, C).state_dict())
    assert not torch.equal(flatten(model), flatten(plain))


def test_statistics_are_those_of_batchnorm() -> None:
    model = own(f"{HELPERS}.Jumping")
    assert int(statistics_mask(model).sum()) == 16  # mean and variance of eight channels


def test_shared_weights_stay_shared() -> None:
    model = own(f"{HELPERS}.Tied", layers=1)
    flat = contiguous_parameters(model)
    assert len(flat) == F + F * F + 2 * F + 2 * F * C + C
    assert not statistics_mask(model).any()
    flat += 1
    assert torch.equal(model.module.first.weight, model.module.second.weight)  # type: ignore[union-attr, arg-type]
    assert torch.equal(flatten(model), flat)
    load_flat(model, torch.zeros(len(flat)))
    assert not flat.any()


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_it_is_built_where_gradients_are_off(mode: Any) -> None:
    with mode():
        model = own(f"{PYG}.GCN", **SMALL)
        assert not torch.is_grad_enabled()
    assert model.receptive_field == ReceptiveField(2, 3)
    assert all(parameter.requires_grad and not parameter.is_inference() for parameter in model.parameters())


def test_the_same_seed_builds_the_same_weights() -> None:
    """Lazy layers draw theirs in the first forward pass; measuring how far a module looks draws nothing."""
    assert torch.equal(flatten(own(f"{HELPERS}.Jumping")), flatten(own(f"{HELPERS}.Jumping")))
    torch.manual_seed(0)
    plain = GraphSAGE(F, 8, 2, C)
    after = torch.rand(1)
    assert torch.equal(flatten(own(f"{PYG}.GraphSAGE", **SMALL)), flatten(plain))
    assert torch.equal(torch.rand(1), after)


def test_a_list_of_fanouts_may_read_more_hops_than_the_model_has_layers() -> None:
    graph, model = random_graph(60, 90, seed=3), own(f"{PYG}.GCN", **SMALL)
    two, three = (sampler_for(model, graph, [-1] * hops).sample(np.array([5]), 0) for hops in (2, 3))
    assert set(two.nodes.tolist()) < set(three.nodes.tolist())


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("no.such.Module", "cannot be imported (No module named 'no'"),
        (f"{HELPERS}.NoSuchNet", "cannot be imported"),
        (f"{HELPERS}.F", "cannot be imported"),
        (f"{HELPERS}.no_module", "returned a int; must return a torch.nn.Module"),
        (f"{HELPERS}.Cached", "conv has cached=True"),
        (f"{HELPERS}.InDouble", "linear.weight is torch.float64"),
        (f"{HELPERS}.OneVector", "must return [nodes, classes], [12, 4] for out_channels=4, not [12]"),
        (f"{PYG}.GraphSAGE", "failed when called with in_channels, out_channels"),
        (f"{PYG}.SAGEConv", "reads 1 hop(s); set model.layers=1"),
        (f"{HELPERS}.AllInDouble", "conv.lin_l.weight is torch.float64"),
        (f"{HELPERS}.NoSuchLayer", "object has no attribute 'con', own_models.py line "),
        ("torch.nn.Linear", "failed when called with in_channels"),
    ],
)
def test_what_cannot_be_a_model_is_refused_in_one_line(target: str, says: str) -> None:
    message = refusal(target)
    assert says in message
    assert message.startswith(("model.target=", "model.layers="))


@pytest.mark.parametrize("more", [-1, 1])
def test_as_many_outputs_as_classes(more: int) -> None:
    message = refusal(f"{HELPERS}.OfWidth", layers=1, more=more)
    rule = f"must return [nodes, classes], [12, {C}] for out_channels={C}, not [12, {C + more}]"
    assert message == f"model.target={HELPERS}.OfWidth: forward {rule}"
