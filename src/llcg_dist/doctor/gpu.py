"""One local step and one evaluation of every model on a device, beside the same on the CPU."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from llcg_dist.config.datasets import SyntheticConfig
from llcg_dist.config.model import ModelConfig
from llcg_dist.config.train import TrainConfig
from llcg_dist.data.datasets.synthetic import generate
from llcg_dist.data.graph import Graph
from llcg_dist.data.views import GraphView
from llcg_dist.models import build_model
from llcg_dist.models.base import Model
from llcg_dist.models.registry import MODELS
from llcg_dist.models.samplers import sampler_for
from llcg_dist.training.flat_vector import flatten
from llcg_dist.training.full_forward import full_forward
from llcg_dist.training.trainer import StepSettings, Trainer

AGREES = 1e-4
"""The largest difference, relative to the length of a step or of the logits, that rounding explains: devices add up in
another order, in float32."""
_LAYERS = "LSBG"
"""What a model is tried with whose layers the settings have to spell out."""


@dataclass(frozen=True)
class Comparison:
    """How far a device is from the CPU: ‖difference‖ relative to ‖what the CPU has‖."""

    device: str
    model: str
    step: float
    """Of the change that one step makes to the parameters, with the features on the host and on the device: the larger
    of the two."""
    logits: float

    @property
    def agrees(self) -> bool:
        return self.step <= AGREES and self.logits <= AGREES


def compare(device: str) -> list[Comparison]:
    """Of all models, on a graph of 600 nodes. Dropout is off: devices draw other random numbers."""
    graph = generate(SyntheticConfig(nodes=600, classes=4, degree=8.0, features=16, seed=0))
    return [_compare(device, name, graph) for name in MODELS]


def _compare(device: str, name: str, graph: Graph) -> Comparison:
    expected = _step(name, graph, "cpu")
    steps = [_distance(_step(name, graph, device, on_device), expected) for on_device in (False, True)]
    logits = _distance(_logits(name, graph, device), _logits(name, graph, "cpu"))
    return Comparison(device, name, max(steps), logits)


def _model(name: str, graph: Graph) -> Model:
    config = ModelConfig(name=name, hidden=32, layers=2, dropout=0.0)
    if not MODELS[name].letters(config):
        config = replace(config, arch=_LAYERS)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return build_model(config, graph.num_features, graph.num_classes)


def _step(name: str, graph: Graph, device: str, features_on_device: bool = False) -> Tensor:
    """What one step changes. By plain gradient descent: Adam makes a whole step of a gradient that is mere rounding."""
    model, view = _model(name, graph), GraphView(graph)
    if features_on_device:
        view.keep_features_on(device)
    start, sampler = flatten(model), sampler_for(model, view.topology, 5)
    settings = StepSettings(stream=1, seed=0, batch_size=64, lr=0.1)
    trainer = Trainer(view, model, sampler, settings, TrainConfig(optimizer="sgd"), device)
    trainer.run_steps(start, 1, 1)
    return trainer.theta() - start


def _logits(name: str, graph: Graph, device: str) -> Tensor:
    """Of the whole graph in several chunks, with recalibrated statistics."""
    model = _model(name, graph).to(device)
    return full_forward(graph, model, 100, recalibrate=True).logits().cpu()


def _distance(found: Tensor, expected: Tensor) -> float:
    return float((found - expected).norm() / expected.norm())
