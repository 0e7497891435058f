"""The server: the whole graph, the correction steps, the judging of every round, the records."""

import time
from collections.abc import Callable
from pathlib import Path

from torch import Tensor

from llcg_dist import seeding
from llcg_dist.algorithms import Algorithm
from llcg_dist.comm.channel import ServerChannel
from llcg_dist.config import Config
from llcg_dist.core.average import averaging_weights
from llcg_dist.core.evaluate import Evaluator, Scores
from llcg_dist.core.learner import Learner, Walker
from llcg_dist.core.parameters import flatten, state_dict_bytes
from llcg_dist.data.graph import Graph
from llcg_dist.engine import RoundResult, run_server
from llcg_dist.models import build_model
from llcg_dist.record import Recorder, Row
from llcg_dist.sampling import NeighborSampler, fanouts_per_layer
from llcg_dist.worker import peak_rss_mb


class Server:
    """Rank 0, the trusted party: it alone holds the whole graph."""

    def __init__(self, config: Config, graph: Graph, train_nodes: list[int], device: str = "cpu") -> None:
        self._config, self._graph = config, graph
        self._weights = averaging_weights(config.algorithm.averaging, train_nodes)
        seeding.seed_torch(seeding.generator(config.seed, seeding.INITIAL_WEIGHTS, 0))
        model = build_model(config.model, graph.num_features, graph.num_classes)
        self.initial_theta = flatten(model)
        self._paper_bytes = state_dict_bytes(model) + model.unused_bytes
        self._best_score: float | None = None
        walker = Walker(seeding.SERVER, config.seed, config.train.server_batch_size, config.train.server_lr)
        sampler = NeighborSampler(graph, fanouts_per_layer(config.sampling.server_fanout, model.depth))
        self._corrector = Learner(graph, model, sampler, walker, config.train, device)
        judged_model = build_model(config.model, graph.num_features, graph.num_classes)
        chunk, scratch = config.evaluate.chunk, config.evaluate.scratch
        self._evaluator = Evaluator(graph, judged_model, config.algorithm.batchnorm_stats, chunk, scratch)

    def train(
        self, algorithm: Algorithm, channel: ServerChannel, run_dir: Path, on_round: Callable[[Row], None]
    ) -> Row:
        """All rounds; returns the summary that it also writes."""
        recorder = Recorder(self._config, run_dir, on_round)

        def judge(result: RoundResult) -> None:
            self._judge(result, recorder)

        theta = run_server(algorithm, self.initial_theta, channel, self._walk, self._weights, judge)
        recorder.save_model("model.pt", self._evaluator.finished_model(theta))
        paper_mb = len(self._weights) * self._paper_bytes / 1e6 if algorithm.trains_on_parts else 0.0
        return recorder.finish(self._graph.metric, paper_mb, peak_rss_mb(), channel.ledger)

    def _walk(self, theta: Tensor, round_: int, steps: int) -> Tensor:
        if steps == 0:  # S=0 is plain averaging, to the last bit
            return theta
        return self._corrector.walk(theta, round_, steps)[0]

    def _judge(self, result: RoundResult, recorder: Recorder) -> None:
        started = time.perf_counter()
        every = self._config.evaluate.every
        due = every > 0 and (result.round % every == 0 or result.round == self._config.num_rounds)
        scores: Scores | None = self._evaluator.judge(result.theta) if due else None
        if scores and scores.val is not None and (self._best_score is None or scores.val > self._best_score):
            self._best_score = scores.val
            recorder.save_model("best.pt", self._evaluator.state_dict())
        recorder.round(result, scores, time.perf_counter() - started)
