"""Would a machine gain by drawing its next mini-batch in a second thread, on a core of its own? Part of bench.rounds.

Two learners walk the same steps in turns; one has its batches drawn by a thread while it computes on the one before.
"""

from concurrent.futures import Future, ThreadPoolExecutor

import torch

from bench.harness import interleaved
from llcg_dist.config.compose import load_config
from llcg_dist.config.schema import Config
from llcg_dist.core.batches import Batches, MiniBatch
from llcg_dist.core.learner import Learner, Walker
from llcg_dist.data.datasets import load_dataset
from llcg_dist.data.graph import Graph
from llcg_dist.data.views import GraphView
from llcg_dist.models import build_model
from llcg_dist.sampling import NeighborSampler, fanouts_per_layer

_STEPS = 8


class _Threaded(Batches):
    """Always one batch ahead."""

    pool = ThreadPoolExecutor(max_workers=1)
    _coming: Future[MiniBatch] | None = None
    _left = _STEPS

    def next(self) -> MiniBatch:
        batch = (self._coming or self.pool.submit(self._draw)).result()
        self._left -= 1
        self._coming = self.pool.submit(self._draw) if self._left else None
        return batch


class _Learner(Learner):
    kind: type[Batches] = Batches

    def _batches_of(self, round_: int) -> Batches:
        walker = self._walker
        return self.kind(self._view, self._sampler, walker.batch_size, walker.seed, walker.who, round_)


class _Ahead(_Learner):
    kind = _Threaded


def measure(settings: list[str], repeats: int) -> tuple[dict[str, list[float]], bool]:
    """Seconds of a walk by contender and repeat ("draw": its batches alone), and whether both had the same bits."""
    config = load_config(settings)
    graph = load_dataset(config.dataset)
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    plain, ahead = _learner(config, graph, _Learner), _learner(config, graph, _Ahead)
    start, ends = plain.theta().clone(), {}

    def walk(name: str, one: Learner) -> None:
        ends[name] = one.walk(start, 1, _STEPS)[0]

    def draw() -> None:
        batches = plain._batches_of(1)
        for _ in range(_STEPS):
            batches.next()

    contenders = {"in turn": lambda: walk("in turn", plain), "ahead": lambda: walk("ahead", ahead), "draw": draw}
    seconds = interleaved(contenders, repeats)
    fresh = [_learner(config, graph, kind).walk(start, 1, _STEPS)[0] for kind in (_Learner, _Ahead)]
    return seconds, torch.equal(*fresh)


def _learner(config: Config, graph: Graph, kind: type[_Learner]) -> Learner:
    torch.manual_seed(0)
    view = GraphView(graph)
    model = build_model(config.model, graph.num_features, graph.num_classes)
    sampler = NeighborSampler(view.topology, fanouts_per_layer(config.sampling.fanout, model.depth))
    walker = Walker(2, config.seed, config.train.local_batch_size, config.train.local_lr)
    return kind(view, model, sampler, walker, config.train)
