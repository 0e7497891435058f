"""LLCG written down a second time, from the paper, with dense matrices in float64, for whole runs to be compared with.

All neighbours, no dropout. Shared with the package are only how random numbers are keyed, and names of parameters.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from llcg_dist import seeding
from llcg_dist.config.schema import Config
from llcg_dist.data.graph import TRAIN
from llcg_dist.models import build_model

FEATURES, CLASSES, SEED, DEPTH, TELEPORT = 16, 4, 7, 2, 0.2
State = dict[str, Tensor]


@dataclass(frozen=True)
class Dense:
    """A graph, or a part of it, as the store has it."""

    adjacency: Tensor
    features: Tensor
    labels: Tensor
    split: Tensor

    @property
    def train_nodes(self) -> Tensor:
        return (self.split == TRAIN).nonzero().view(-1)


def dense(folder: Path) -> Dense:
    indptr, indices, features, labels, split = (
        torch.from_numpy(np.load(folder / f"{name}.npy"))
        for name in ("indptr", "indices", "features", "labels", "split")
    )
    return Dense(dense_adjacency(indptr, indices), features.double(), labels, split)


def dense_adjacency(indptr: Tensor, indices: Tensor) -> Tensor:
    adjacency = torch.zeros(len(indptr) - 1, len(indptr) - 1, dtype=torch.float64)
    adjacency[torch.repeat_interleave(indptr.diff()), indices.long()] = 1
    return adjacency


def initial_state(config: Config) -> State:
    """The weights that a run begins with; no counters."""
    seeding.seed_torch(seeding.generator(SEED, seeding.INITIAL_WEIGHTS_STREAM, 0))
    initial = build_model(config.model, FEATURES, CLASSES).state_dict()
    return {name: value.double() for name, value in initial.items() if value.is_floating_point()}


def mean_of(states: Iterable[State]) -> State:
    """Line 11."""
    several = list(states)
    return {name: torch.stack([state[name] for state in several]).mean(dim=0) for name in several[0]}


def normalised(adjacency: Tensor) -> Tensor:
    """D^-1/2 (A+I) D^-1/2."""
    looped = adjacency + torch.eye(len(adjacency))
    return looped / looped.sum(dim=1).outer(looped.sum(dim=1)).sqrt()


def sage(state: State, name: str, adjacency: Tensor, x: Tensor) -> Tensor:
    mean = adjacency @ x / adjacency.sum(dim=1, keepdim=True).clamp(min=1)
    own = x @ state[f"{name}.lin_r.weight"].T + state[f"{name}.lin_r.bias"]
    return own + mean @ state[f"{name}.lin_l.weight"].T + state[f"{name}.lin_l.bias"]


def gcn(state: State, name: str, adjacency: Tensor, x: Tensor) -> Tensor:
    return normalised(adjacency) @ x @ state[f"{name}.lin.weight"].T + state[f"{name}.bias"]


def gat(state: State, name: str, adjacency: Tensor, x: Tensor) -> Tensor:
    z = x @ state[f"{name}.lin.weight"].T
    to, fro = (z @ state[f"{name}.att_{end}"].view(-1) for end in ("dst", "src"))
    scores = functional.leaky_relu(to[:, None] + fro[None, :], 0.2)
    seen = adjacency + torch.eye(len(adjacency)) > 0
    return scores.masked_fill(~seen, -torch.inf).softmax(dim=1) @ z + state[f"{name}.bias"]


LAYERS = {"sage": sage, "gcn": gcn, "gat": gat}


def batchnorm(state: State, name: str, x: Tensor, rows_of: Tensor, mode: str) -> Tensor:
    """Over the nodes in the mask `rows_of`, with the batch's own statistics (train) or the running ones (average,
    recalibrate)."""
    if mode == "recalibrate":
        state[f"{name}.running_mean"], state[f"{name}.running_var"] = x.mean(dim=0), x.var(dim=0)
    running = state[f"{name}.running_mean"], state[f"{name}.running_var"]
    affine = state.get(f"{name}.weight"), state.get(f"{name}.bias")
    out = torch.zeros_like(x)
    out[rows_of] = functional.batch_norm(x[rows_of], *running, *affine, training=mode == "train")
    return out


def logits(model: str, state: State, data: Dense, seeds: Tensor, mode: str) -> Tensor:
    """Of the nodes in the mask `seeds`; BatchNorm sees the nodes that a mini-batch with these seeds reads there."""
    reached = [seeds]
    for _ in range(DEPTH):
        reached.insert(0, reached[0] | (data.adjacency[reached[0]].sum(dim=0) > 0))
    if model == "appnp":
        x = batchnorm(state, "stages.0.norm", data.features, reached[0], mode)
        first = h = functional.linear(x, state["stages.0.layer.weight"], state["stages.0.layer.bias"]).relu()
        for _ in range(DEPTH):
            h = TELEPORT * first + (1 - TELEPORT) * normalised(data.adjacency) @ h
        return functional.linear(h, state["stages.3.layer.weight"], state["stages.3.layer.bias"])[seeds]
    h = LAYERS[model](state, "stages.0.layer.conv", data.adjacency, data.features)
    h = batchnorm(state, "stages.1.norm", h, reached[1], mode).relu()
    return LAYERS[model](state, "stages.1.layer.conv", data.adjacency, h)[seeds]


class Worker:
    """A machine, or the server: its data, its optimiser with its state, its stream of random numbers."""

    def __init__(
        self,
        model: str,
        data: Dense,
        state: State,
        optimizer: Callable[..., torch.optim.Optimizer],
        stream: int,
        nodes: Tensor | None = None,
    ) -> None:
        """`optimizer`: made of parameters. `nodes`: what mini-batches are drawn from; None: all training nodes."""
        self._model, self._data, self._stream = model, data, stream
        self._nodes = (data.train_nodes if nodes is None else nodes).numpy()
        self._learned = {name: nn.Parameter(value.clone()) for name, value in state.items() if "running" not in name}
        self._optimizer = optimizer(self._learned.values())
        self.shift = torch.zeros(CLASSES)
        """What is added to the logits in the loss."""

    @torch.enable_grad()
    def steps(self, start: State, round_: int, count: int, batch_size: int) -> State:
        """Lines 3 to 10, or 12 to 17."""
        rng = seeding.generator(SEED, self._stream, round_)
        seeding.torch_seed(rng)
        state = {name: value.clone() for name, value in start.items()}
        for name, parameter in self._learned.items():
            parameter.data.copy_(start[name])
            state[name] = parameter
        for _ in range(count):
            chosen = torch.zeros(len(self._data.adjacency), dtype=torch.bool)
            chosen[rng.choice(self._nodes, min(batch_size, len(self._nodes)), replace=False)] = True
            rng.integers(2**31)
            output = logits(self._model, state, self._data, chosen, "train") + self.shift
            self._optimizer.zero_grad()
            functional.cross_entropy(output, self._data.labels[chosen]).backward()
            self._optimizer.step()
        return {name: value.detach().clone() for name, value in state.items()}
