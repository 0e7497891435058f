"""A local machine: one part of the graph, and the local steps of each round."""

import logging
import time
from pathlib import Path

import torch

from llcg_dist import seeding
from llcg_dist.checkpoint import CheckpointFiles, Saver, fitting, part_owner
from llcg_dist.comm.channel import Order, Report, Update
from llcg_dist.core.learner import Learner, Walker
from llcg_dist.core.parameters import flatten
from llcg_dist.data.graph import Graph
from llcg_dist.models import build_model
from llcg_dist.sampling import NeighborSampler, fanouts_per_layer
from llcg_dist.schema import Config

log = logging.getLogger(__name__)


class Machine:
    """Trains on `graph`, a part or (for `single`) the whole."""

    def __init__(
        self,
        config: Config,
        graph: Graph,
        part: int,
        steps: list[int],
        checkpoints: Path,
        start_round: int = 0,
        device: str = "cpu",
    ) -> None:
        self._steps = steps
        model = build_model(config.model, graph.num_features, graph.num_classes)
        self.num_parameters = flatten(model).numel()
        machines_in_one = config.cluster.num_machines if config.algorithm.name == "single" else 1
        batch_size = config.train.local_batch_size * machines_in_one
        walker = Walker(seeding.part(part), config.seed, batch_size, config.train.local_lr)
        sampler = NeighborSampler(graph, fanouts_per_layer(config.sampling.fanout, model.depth))
        self._learner = Learner(graph, model, sampler, walker, config.train, device)
        files = CheckpointFiles(checkpoints, part_owner(part))
        if start_round:
            saved = files.load(start_round)
            with fitting(part_owner(part), start_round):
                self._learner.load_optimizer_state(saved["optimizer"])
        files.drop_after(start_round)
        self.saver = Saver(files, config.checkpoint.every, config.checkpoint.keep, config.num_rounds, start_round)

    def learn(self, order: Order, round_: int) -> Update:
        """Lines 4-9 of Algorithm 2: steps(r) local steps from the model that the server sent."""
        started = time.perf_counter()
        self.saver.prune(order.whole_round)
        steps = self._steps[round_ - 1]
        theta, loss = self._learner.walk(order.theta, round_, steps)
        seconds = time.perf_counter() - started
        if not bool(torch.isfinite(theta).all()):
            log.warning("round %d: parameters are not finite; the optimiser starts anew", round_)
            self._learner.reset_optimizer()  # its moments are poisoned too
        self.saver.save(round_, lambda: {"optimizer": self._learner.optimizer_state()})
        return Update(theta, self._report(loss, seconds, steps))

    def _report(self, loss: float | None, seconds: float, steps: int) -> Report:
        saver = self.saver
        return Report(
            train_loss=0.0 if loss is None else loss,
            seconds_local=seconds,
            steps=steps,
            peak_rss_mb=peak_rss_mb(),
            checkpoint_round=saver.whole_round,
            checkpoint_failed=int(saver.problem is not None),
            seconds_checkpoint=saver.seconds,
            checkpoint_bytes=saver.bytes,
        )


def peak_rss_mb() -> float:
    """Of this process's own memory image; getrusage would count what the launcher held before it became this."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("/proc/self/status has no VmHWM")
