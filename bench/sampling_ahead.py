"""What does a machine gain by drawing its next mini-batch in a second thread, on a free core? Part of bench.rounds.

Two trainers walk the same steps in turns; one has its batches drawn by a thread while it computes on the one before.
"""

import torch
from torch import Tensor

from bench.harness import interleaved
from llcg_dist.config.compose import load_config
from llcg_dist.config.schema import Config
from llcg_dist.data.datasets import load_dataset
from llcg_dist.data.graph import Graph
from llcg_dist.data.views import GraphView
from llcg_dist.models import build_model
from llcg_dist.sampling.minibatch import fanouts_per_layer
from llcg_dist.sampling.neighbor import NeighborSampler
from llcg_dist.training.threads import prepare_computing
from llcg_dist.training.trainer import StepSettings, Trainer

_STEPS = 8


def measure(settings: list[str], repeats: int) -> tuple[dict[str, list[float]], bool]:
    """Seconds of a round's steps by contender ("draw": its batches alone), and whether both had the same bits."""
    config = load_config(settings)
    graph = load_dataset(config.dataset)
    prepare_computing(threads=1)
    plain, ahead = _trainer(config, graph, False), _trainer(config, graph, True)
    start = plain.theta().clone()

    def steps(one: Trainer) -> Tensor:
        one.run_steps(start, 1, _STEPS)
        return one.theta().clone()

    def draw() -> None:
        batches = plain._batches_of(1)
        for _ in range(_STEPS):
            batches.next()

    contenders = {"in turn": lambda: steps(plain), "ahead": lambda: steps(ahead), "draw": draw}
    seconds = interleaved(contenders, repeats)
    fresh = [steps(_trainer(config, graph, draw_ahead)) for draw_ahead in (False, True)]
    return seconds, torch.equal(*fresh)


def _trainer(config: Config, graph: Graph, draw_ahead: bool) -> Trainer:
    torch.manual_seed(0)
    view = GraphView(graph)
    model = build_model(config.model, graph.num_features, graph.num_classes)
    sampler = NeighborSampler(view.topology, fanouts_per_layer(config.sampling.fanout, model.depth))
    train = config.train
    step_settings = StepSettings(2, config.seed, train.local_batch_size, train.local_lr, draw_ahead=draw_ahead)
    return Trainer(view, model, sampler, step_settings, config.train)
