"""A local machine: one part of the graph, and the local steps of each round."""

import time
from pathlib import Path

from torch import Tensor

from llcg_dist import seeding
from llcg_dist.comm.channel import Report, Update
from llcg_dist.config import Config
from llcg_dist.core.learner import Learner, Walker
from llcg_dist.core.parameters import flatten
from llcg_dist.data.graph import Graph
from llcg_dist.models import build_model
from llcg_dist.sampling import NeighborSampler, fanouts_per_layer


class Machine:
    """Trains on `graph`, a part or (for `single`) the whole."""

    def __init__(self, config: Config, graph: Graph, part: int, steps: list[int], device: str = "cpu") -> None:
        self.part = part
        self._steps = steps
        model = build_model(config.model, graph.num_features, graph.num_classes)
        self.num_parameters = flatten(model).numel()
        machines_in_one = config.cluster.num_machines if config.algorithm.name == "single" else 1
        batch_size = config.train.local_batch_size * machines_in_one
        walker = Walker(seeding.part(part), config.seed, batch_size, config.train.local_lr)
        sampler = NeighborSampler(graph, fanouts_per_layer(config.sampling.fanout, model.depth))
        self._learner = Learner(graph, model, sampler, walker, config.train, device)

    def learn(self, theta: Tensor, round_: int) -> Update:
        """Lines 4-9 of Algorithm 2: steps(r) local steps from the model that the server sent."""
        started = time.perf_counter()
        steps = self._steps[round_ - 1]
        theta, loss = self._learner.walk(theta, round_, steps)
        return Update(theta, Report(loss or 0.0, time.perf_counter() - started, steps, peak_rss_mb()))


def peak_rss_mb() -> float:
    """Of this process's own memory image; getrusage would count what the launcher held before it became this."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("/proc/self/status has no VmHWM")
