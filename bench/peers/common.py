"""What the peers' programs share: the settings that they are given, a clock that stops while a model is scored, rows
like ours. Each program is started as `python -m bench.peers.distdgl SETTINGS RANK` is."""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.nn import GraphSAGE

from llcg_dist.config.schema import Verify
from llcg_dist.data.graph import VAL, Graph
from llcg_dist.data.store import read_shard
from llcg_dist.data.views import GraphView
from llcg_dist.job.machine import peak_rss_mb
from llcg_dist.sampling.block import full_graph_block
from llcg_dist.sampling.minibatch import Batch, BatchStream
from llcg_dist.sampling.neighbor import SubgraphSampler


@dataclass(frozen=True)
class Settings:
    """Of one run of a peer: read from a file that the driver writes."""

    store: str
    out: str
    head: str
    """Address of the host of rank 0."""
    machines: int
    target: float
    limit: float
    """Seconds of training after which a run is given up."""
    steps: int
    """Between two scores: local steps of a round, or steps that all take together."""
    lr: float
    batch: int
    fanout: int
    hidden: int
    layers: int
    seed: int

    @classmethod
    def read(cls, path: str) -> "Settings":
        return cls(**json.loads(Path(path).read_text()))

    def graph(self, name: str = "global") -> Graph:
        return read_shard(Path(self.store) / name, Verify.sizes).graph

    def assignment(self) -> np.ndarray:
        return read_shard(Path(self.store) / "global", Verify.sizes).extra["assignment"]

    def model(self, graph: Graph) -> nn.Module:
        """PyG's own GraphSAGE with BatchNorm between its layers, as our SBSBS has."""
        torch.manual_seed(self.seed)
        shape = (graph.num_features, self.hidden, self.layers, graph.num_classes)
        return GraphSAGE(*shape, dropout=0.5, norm="batch_norm")

    def batches(self, view: GraphView, part: int) -> Iterator[Batch]:
        """PyG's own sampler has no wheel for this torch: batches are drawn by our kernels, which are not slower."""
        sampler = SubgraphSampler(view.topology, [self.fanout] * self.layers)
        stream = BatchStream(view, sampler, self.batch, (self.seed, 1 + part, 1))
        while True:
            yield stream.next().to("cpu")


class Clock:
    """Seconds of training; a row for every score, in the file that the driver reads."""

    def __init__(self, settings: Settings) -> None:
        self._settings, self._seconds, self._since = settings, 0.0, time.monotonic()

    def score(self, score: Callable[[], float]) -> bool:
        """Scores the model while the clock stands still; whether training is over."""
        took = time.monotonic() - self._since
        self._seconds += took
        val = score()
        row = {"val_score": val, "seconds_round": took, "peak_rss_mb": peak_rss_mb()}
        with (Path(self._settings.out) / "metrics.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")
        self._since = time.monotonic()
        return val >= self._settings.target or self._seconds >= self._settings.limit

    def start(self) -> None:
        self._since = time.monotonic()


def write_peak(settings: Settings, name: str) -> None:
    (Path(settings.out) / f"peak.{name}.json").write_text(json.dumps({"peak_rss_mb": peak_rss_mb()}))


def step(model: nn.Module, optimizer: torch.optim.Optimizer, batch: Batch) -> None:
    """One optimiser step of a PyG model on a sampled subgraph."""
    (block,) = batch.blocks
    logits = model(batch.features[:], block.edge_index)[: len(batch.labels)]  # type: ignore[attr-defined]
    optimizer.zero_grad(set_to_none=True)
    nn.functional.cross_entropy(logits, batch.labels).backward()
    optimizer.step()


@torch.no_grad()
def validation_score(model: nn.Module, graph: Graph) -> float:
    """Over the whole graph with all neighbours, in eval mode; the model goes on in train mode."""
    block = full_graph_block(graph)
    row = torch.repeat_interleave(torch.arange(graph.num_nodes), block.indptr.diff())
    logits: Tensor = model.eval()(torch.from_numpy(graph.features), torch.stack([block.indices.long(), row]))
    nodes = torch.from_numpy(np.flatnonzero(graph.split == VAL))
    model.train()
    return float((logits[nodes].argmax(1) == torch.from_numpy(graph.labels)[nodes]).double().mean())
