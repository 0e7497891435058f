"""A trainer on a small graph, and the model after its steps."""

import torch
from torch import Tensor

from llcg_dist.config.model import ModelConfig
from llcg_dist.config.train import TrainConfig
from llcg_dist.data.graph import Graph
from llcg_dist.data.rows import Array
from llcg_dist.data.views import GraphView
from llcg_dist.models.stages import GraphModel
from llcg_dist.sampling.minibatch import Sample
from llcg_dist.sampling.neighbor import NeighborSampler
from llcg_dist.training.flat_vector import flatten
from llcg_dist.training.trainer import StepSettings, Trainer
from tests.helpers.graphs import community_graph
from tests.helpers.models import staged_model

GRAPH = community_graph()
STEPS = StepSettings(stream=2, seed=5, batch_size=16, lr=1e-2)


def new_model(arch: str = "SBS", dropout: float = 0.5) -> GraphModel:
    torch.manual_seed(0)
    return staged_model(ModelConfig(arch=arch, hidden=8, dropout=dropout), GRAPH.num_features, GRAPH.num_classes)


def trainer(
    step_settings: StepSettings = STEPS, train: TrainConfig | None = None, model: GraphModel | None = None
) -> Trainer:
    model = model or new_model()
    sampler = NeighborSampler(GRAPH, [3] * model.depth)
    return Trainer(GraphView(GRAPH), model, sampler, step_settings, train or TrainConfig())


START = flatten(new_model())


def stepped(one: Trainer, round_: int = 1, steps: int = 4, start: Tensor = START) -> Tensor:
    one.run_steps(start, round_, steps)
    return one.theta().clone()


class Recording:
    """The real sampler, with a note of what it was asked."""

    def __init__(self, graph: Graph, fanouts: list[int]) -> None:
        self.sampler = NeighborSampler(graph, fanouts)
        self.asked: list[tuple[list[int], int]] = []

    def sample(self, seeds: Array, seed: int) -> Sample:
        self.asked.append((seeds.tolist(), seed))
        return self.sampler.sample(seeds, seed)
