"""The ways to take a training step that bench/local_step.py compares: the same graph, model, optimiser and threads.

A model is SAGE layers with BatchNorm, ReLU and dropout between them, in each library's own layers. (Ours has a second
bias in every layer, which the contenders' layers do not.)
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import dgl
import torch
from dgl.dataloading import DataLoader
from dgl.dataloading import NeighborSampler as DglSampler
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.nn import SAGEConv

from bench.dgl_sampler import DglNeighborSampler
from llcg_dist import seeding
from llcg_dist.config.schema import Config
from llcg_dist.data.csr import Topology
from llcg_dist.data.feature_rows import materialize
from llcg_dist.data.graph import TRAIN, Graph
from llcg_dist.data.views import GraphView
from llcg_dist.models import build_model
from llcg_dist.sampling.block import Block
from llcg_dist.sampling.minibatch import Sampler, fanouts_per_layer
from llcg_dist.sampling.neighbor import NeighborSampler
from llcg_dist.training.trainer import StepSettings, Trainer

Steps = Callable[[int], None]
"""A contender: takes as many training steps as it is called with."""


def trainer_of(config: Config, graph: Graph, method: str = "neighbor", draw_ahead: bool = False) -> Trainer:
    """A machine with a part of its own, before its first step. `method` dgl: with DGL's fused sampler."""
    model = build_model(config.model, graph.num_features, graph.num_classes)
    train = config.train
    step_settings = StepSettings(
        seeding.part_stream(0), config.seed, train.local_batch_size, train.local_lr, draw_ahead=draw_ahead
    )
    trainer = Trainer(GraphView(graph), model, _sampler(config, graph, method), step_settings, config.train)
    trainer.begin_round(None, 1)
    return trainer


def ours(config: Config, graph: Graph, method: str = "neighbor") -> Steps:
    """A machine's local steps, as `llcg train` takes them."""
    trainer = trainer_of(config, graph, method)

    def steps(count: int) -> None:
        for _ in range(count):
            trainer.backward()
            trainer.optimizer_step()

    return steps


def under_autocast(steps: Steps) -> Steps:
    """The same loop as its users would run it in bfloat16."""

    def in_bfloat16(count: int) -> None:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            steps(count)

    return in_bfloat16


def ours_ahead(config: Config, graph: Graph) -> Steps:
    """The same with the next batch drawn by a second thread (sampling.prefetch)."""
    trainer = trainer_of(config, graph, draw_ahead=True)
    start = trainer.theta().clone()
    return lambda count: trainer.run_steps(start, 1, count)


def dgl_loop(config: Config, graph: Graph) -> Steps:
    """DGL's tutorial: its DataLoader with features fetched by the sampler, its SAGEConv."""
    batches = _dgl_batches(config, graph)

    def layer(width_in: int, width_out: int) -> nn.Module:
        return dgl.nn.SAGEConv(width_in, width_out, "mean")

    model = _Sage(layer, config, graph)
    optimizer = torch.optim.Adam(model.parameters(), lr=config.train.local_lr)

    def steps(count: int) -> None:
        for _ in range(count):
            blocks = next(batches)
            logits = model(blocks[0].srcdata["features"], blocks)
            _update(optimizer, logits, blocks[-1].dstdata["labels"])

    return steps


def pyg_over_edges(config: Config, graph: Graph) -> Steps:
    """PyG's SAGEConv over edge_index, on the blocks of our sampler: PyG's own needs libraries without wheels."""
    view, draw = GraphView(graph), _drawer(config, graph)

    class Layer(SAGEConv):
        def forward(self, block: Block, x: Tensor) -> Tensor:
            rows = torch.repeat_interleave(torch.arange(block.num_dst), block.indptr.diff())
            edge_index = torch.stack([block.indices.long(), rows])
            return super().forward((x, x[: block.num_dst]), edge_index)

    model = _Sage(Layer, config, graph)
    optimizer = torch.optim.Adam(model.parameters(), lr=config.train.local_lr)

    def steps(count: int) -> None:
        for _ in range(count):
            batch = draw()
            logits = model(materialize(view.features(batch.nodes)), batch.blocks)
            _update(optimizer, logits, view.labels(batch.seeds))

    return steps


def floor(config: Config, graph: Graph) -> Steps:
    """What no step can do without: our sampling, our gather, and the dense products of forward and backward alone."""
    view, draw = GraphView(graph), _drawer(config, graph)
    widths = _widths(config, graph)

    def steps(count: int) -> None:
        for _ in range(count):
            batch = draw()
            materialize(view.features(batch.nodes))
            for layer, (block, width_in, width_out) in enumerate(zip(batch.blocks, widths, widths[1:], strict=False)):
                state, gradient = _filled(block.num_dst, width_in), _filled(block.num_dst, width_out)
                weight = _filled(width_out, width_in)
                for _map in ("own", "neighbours"):
                    state @ weight.T
                    gradient.T @ state
                    if layer > 0:  # features need no gradient
                        gradient @ weight

    return steps


class _Sage(nn.Module):
    """Layers that are called with a block and the rows it reads."""

    def __init__(self, layer: Callable[[int, int], nn.Module], config: Config, graph: Graph) -> None:
        super().__init__()
        widths = _widths(config, graph)
        self.layers = nn.ModuleList(map(layer, widths[:-1], widths[1:]))
        self.norms = nn.ModuleList(map(nn.BatchNorm1d, widths[1:-1]))
        self.dropout = config.model.dropout

    def forward(self, x: Tensor, blocks: Sequence[Any]) -> Tensor:
        for number, (layer, block) in enumerate(zip(self.layers, blocks, strict=True)):
            x = layer(block, x)
            if number < len(self.norms):
                x = functional.dropout(self.norms[number](x).relu(), self.dropout)
        return x


_BUFFERS: dict[tuple[int, int], Tensor] = {}


def _filled(rows: int, width: int) -> Tensor:
    """Made once and large enough for every batch: the floor fills nothing."""
    room = 1 << (rows - 1).bit_length()
    if (room, width) not in _BUFFERS:
        _BUFFERS[room, width] = torch.randn(room, width)
    return _BUFFERS[room, width][:rows]


def _update(optimizer: torch.optim.Optimizer, logits: Tensor, labels: Tensor) -> None:
    optimizer.zero_grad()
    functional.cross_entropy(logits.float(), labels).backward()
    optimizer.step()


def _widths(config: Config, graph: Graph) -> list[int]:
    return [graph.num_features, *[config.model.hidden] * (config.model.layers - 1), graph.num_classes]


def _sampler(config: Config, graph: Graph, method: str) -> Sampler:
    if method == "dgl":
        return DglNeighborSampler(Topology(graph.indptr, graph.indices), [10] * config.model.layers)
    return NeighborSampler(graph, fanouts_per_layer(config.sampling.fanout, config.model.layers), method)


def _drawer(config: Config, graph: Graph) -> Callable[[], Any]:
    sampler, rng = _sampler(config, graph, "neighbor"), seeding.generator(config.seed, seeding.part_stream(0), 1)
    nodes = graph.nodes_in(TRAIN)

    def draw() -> Any:
        seeds = rng.choice(nodes, config.train.local_batch_size, replace=False)
        return sampler.sample(seeds, int(rng.integers(2**31)))

    return draw


def _dgl_batches(config: Config, graph: Graph) -> Iterator[Any]:
    indptr, indices = torch.from_numpy(graph.indptr).long(), torch.from_numpy(graph.indices).long()
    dgl_graph = dgl.graph(("csc", (indptr, indices, torch.empty(0, dtype=torch.int64))), num_nodes=graph.num_nodes)
    dgl_graph.ndata["features"] = torch.from_numpy(graph.features)
    dgl_graph.ndata["labels"] = torch.from_numpy(graph.labels)
    fanouts = fanouts_per_layer(config.sampling.fanout, config.model.layers)
    sampler = DglSampler(fanouts, prefetch_node_feats=["features"], prefetch_labels=["labels"])
    nodes, size = torch.from_numpy(graph.nodes_in(TRAIN)), config.train.local_batch_size
    loader = DataLoader(dgl_graph, nodes, sampler, batch_size=size, shuffle=True, drop_last=True)
    while True:
        for _, _, blocks in loader:
            yield blocks
