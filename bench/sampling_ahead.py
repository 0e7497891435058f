"""Would a machine gain by drawing its next mini-batch in a second thread, on a core of its own? Part of bench.rounds.

Two trainers take the same local steps in turns; a thread draws the next batch of one of them while it computes.
"""

from concurrent.futures import Future, ThreadPoolExecutor

import torch

from bench.harness import interleaved
from llcg_dist.config.compose import load_config
from llcg_dist.config.schema import Config
from llcg_dist.data.datasets import load_dataset
from llcg_dist.data.graph import Graph
from llcg_dist.data.views import GraphView
from llcg_dist.models import build_model
from llcg_dist.sampling.minibatch import Batch, BatchStream, fanouts_per_layer
from llcg_dist.sampling.neighbor import NeighborSampler
from llcg_dist.training.trainer import StepSettings, Trainer

_STEPS = 8


class _Threaded(BatchStream):
    """Mini-batches that a thread draws, always one ahead of the step."""

    pool = ThreadPoolExecutor(max_workers=1)
    _coming: Future[Batch] | None = None
    _left = _STEPS

    def next(self) -> Batch:
        batch = (self._coming or self.pool.submit(self._draw)).result()
        self._left -= 1
        self._coming = self.pool.submit(self._draw) if self._left else None
        return batch


class _Trainer(Trainer):
    kind: type[BatchStream] = BatchStream

    def _batches_of(self, round_: int) -> BatchStream:
        steps = self._settings
        return self.kind(self._view, self._sampler, steps.batch_size, steps.seed, steps.stream, round_)


class _Ahead(_Trainer):
    kind = _Threaded


def measure(settings: list[str], repeats: int) -> tuple[dict[str, list[float]], bool]:
    """Seconds of the local steps by contender and repeat ("draw": their batches alone), and whether bits were equal."""
    config = load_config(settings)
    graph = load_dataset(config.dataset)
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    plain, ahead = _trainer(config, graph, _Trainer), _trainer(config, graph, _Ahead)
    start, ends = plain.theta().clone(), {}

    def take_steps(name: str, trainer: Trainer) -> None:
        ends[name] = trainer.run_steps(start, 1, _STEPS)[0]

    def draw() -> None:
        batches = plain._batches_of(1)
        for _ in range(_STEPS):
            batches.next()

    contenders = {
        "in turn": lambda: take_steps("in turn", plain),
        "ahead": lambda: take_steps("ahead", ahead),
        "draw": draw,
    }
    seconds = interleaved(contenders, repeats)
    fresh = [_trainer(config, graph, kind).run_steps(start, 1, _STEPS)[0] for kind in (_Trainer, _Ahead)]
    return seconds, torch.equal(*fresh)


def _trainer(config: Config, graph: Graph, kind: type[_Trainer]) -> Trainer:
    torch.manual_seed(0)
    view = GraphView(graph)
    model = build_model(config.model, graph.num_features, graph.num_classes)
    sampler = NeighborSampler(view.topology, fanouts_per_layer(config.sampling.fanout, model.depth))
    steps = StepSettings(2, config.seed, config.train.local_batch_size, config.train.local_lr)
    return kind(view, model, sampler, steps, config.train)
