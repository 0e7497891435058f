"""Every model, and what trains, corrects and evaluates it on a device of the caller's choice."""

import functools

import torch

from llcg_dist.config.model import ModelConfig
from llcg_dist.config.train import TrainConfig
from llcg_dist.data.graph import Graph
from llcg_dist.data.views import GraphView
from llcg_dist.models import build_model
from llcg_dist.models.base import Model
from llcg_dist.models.registry import MODELS
from llcg_dist.models.samplers import sampler_for
from llcg_dist.training.correction import Corrector
from llcg_dist.training.trainer import StepSettings, Trainer
from tests.helpers.graphs import community_graph

GRAPH = community_graph()
_OWN = {
    "own": ("tests.helpers.own_models.Jumping", {}),
    "own_trimmed": ("torch_geometric.nn.GraphSAGE", {"hidden_channels": 8, "num_layers": 2}),
}


def config_of(name: str) -> ModelConfig:
    if name in _OWN:
        target, options = _OWN[name]
        return ModelConfig(target=target, options=options, layers=2)
    arch = {"arch": "LSBG"}.get(name)
    return ModelConfig(name=name, arch=arch, hidden=8, layers=2, dropout=0.5)


NAMES = [*MODELS, *_OWN]
"""Every model that the settings know, and two of a user's own: PyG modules, one of which leaves out far nodes."""


def model_of(name: str) -> Model:
    torch.manual_seed(0)
    return build_model(config_of(name), GRAPH.num_features, GRAPH.num_classes)


def trainer_of(name: str, device: str, features_on_device: bool = False, train: TrainConfig | None = None) -> Trainer:
    """Of the model of this name, on this device: three neighbours of each of 16 nodes."""
    model, view = model_of(name), GraphView(GRAPH)
    if features_on_device:
        view.keep_features_on(device)
    sampler = sampler_for(model, view.topology, 3)
    settings = StepSettings(stream=2, seed=5, batch_size=16, lr=1e-2)
    return Trainer(view, model, sampler, settings, train or TrainConfig(), device)


def corrector_of(name: str, device: str) -> Corrector:
    """Of the server: all neighbours, and batches that are drawn before they are needed."""
    model, view = model_of(name), GraphView(GRAPH)
    sampler = sampler_for(model, view.topology, -1)
    settings = StepSettings(stream=0, seed=5, batch_size=16, lr=1e-2)
    return Corrector(Trainer(view, model, sampler, settings, TrainConfig(), device), None, None, expected_steps=2)


@functools.cache
def graph_of_several_chunks() -> Graph:
    return community_graph(300)
