"""Steps in bfloat16: the products are rounded in every kind of model, and what is learned stays float32."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from llcg_dist.config.model import ModelConfig
from llcg_dist.config.train import Precision, TrainConfig
from llcg_dist.data.views import GraphView
from llcg_dist.models import build_model
from llcg_dist.models.base import Model
from llcg_dist.models.samplers import sampler_for
from llcg_dist.training.trainer import StepSettings, Trainer
from tests.helpers.graphs import community_graph

GRAPH = community_graph()
SETTINGS = StepSettings(stream=2, seed=5, batch_size=32, lr=1e-2)
MODELS = {
    "sage": ModelConfig(name="sage", hidden=16),
    "narrowing_sage": ModelConfig(name="sage", hidden=2),  # W comes before A
    "gcn": ModelConfig(name="gcn", hidden=16),
    "narrowing_gcn": ModelConfig(name="gcn", hidden=2),
    "gat": ModelConfig(name="gat", hidden=16, heads=2),
    "appnp": ModelConfig(name="appnp", hidden=16),
    "resgcn": ModelConfig(name="resgcn", hidden=16),
    "skip_sage": ModelConfig(name="skip_sage", hidden=16),
    "own": ModelConfig(
        name="own",
        target="torch_geometric.nn.GraphSAGE",
        options={"hidden_channels": 16, "num_layers": 2},
        layers=2,
    ),
}


class _Products(torch.utils._python_dispatch.TorchDispatchMode):
    """Notes the types of all dense products that are made within it."""

    def __init__(self) -> None:
        super().__init__()
        self.types = set[torch.dtype]()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        if function._overloadpacket.__name__ in ("mm", "addmm", "addmm_"):
            self.types |= {given.dtype for given in (*args, result) if isinstance(given, Tensor)}
        return result


def one_step(config: ModelConfig, precision: Precision) -> tuple[Model, Tensor, set[torch.dtype]]:
    """The model after a step, its gradient, and the types of the dense products of forward and backward pass."""
    torch.manual_seed(0)
    model = build_model(config, GRAPH.num_features, GRAPH.num_classes)
    view = GraphView(GRAPH)
    sampler = sampler_for(model, view.topology, 5)
    trainer = Trainer(view, model, sampler, SETTINGS, TrainConfig(precision=precision))
    trainer.begin_round(None, 1)
    with _Products() as products:
        trainer.backward()
    gradient = trainer.flat_gradient()
    trainer.optimizer_step()
    return model, gradient, products.types


@pytest.mark.parametrize("name", MODELS)
def test_every_dense_product_is_rounded_and_what_is_learned_is_not(name: str) -> None:
    _, exact, plain = one_step(MODELS[name], Precision.float32)
    model, gradient, rounded = one_step(MODELS[name], Precision.bfloat16)
    assert (plain, rounded) == ({torch.float32}, {torch.bfloat16})
    assert all(not t.is_floating_point() or t.dtype == torch.float32 for t in model.state_dict().values())
    assert gradient.dtype == torch.float32
    assert not torch.equal(gradient, exact)
    assert torch.cosine_similarity(gradient, exact, dim=0) > 0.99


def test_statistics_of_a_batch_are_summed_in_float32() -> None:
    """4,096 ones in bfloat16 would stop at 256."""
    norm, x = nn.BatchNorm1d(1, momentum=1.0), torch.ones(4096, 1, dtype=torch.bfloat16)
    x[0] = 129.0
    norm(x)
    assert norm.running_mean is not None
    assert norm.running_mean.item() == pytest.approx(1 + 128 / 4096)
