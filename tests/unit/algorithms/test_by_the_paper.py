"""Algorithm 2 written down a second time, from the paper, with dense matrices in float64: whole runs are the same.

All neighbours, no dropout. Shared with the package are only the initial weights and how random numbers are keyed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from llcg_dist import seeding
from llcg_dist.config.compose import load_config
from llcg_dist.data.graph import TEST, TRAIN, VAL
from llcg_dist.data.partition import store_path
from llcg_dist.models import build_model
from tests.helpers.run_files import model_state, rows
from tests.helpers.training import on_loopback

MACHINES, FEATURES, CLASSES, SEED, DEPTH, TELEPORT = 3, 16, 4, 7, 2, 0.2
LOCAL_LR, SERVER_LR, LOCAL_BATCH, SERVER_BATCH, CORRECTIONS = 0.1, 0.15, 20, 50, 2
STEPS = [3, 4, 5]
"""K = 4 with rho = 1.3 over three rounds: 12 steps in all, 3.008, 3.910 and 5.083."""
State = dict[str, Tensor]


@dataclass(frozen=True)
class Dense:
    """A graph, or a part of it, as the store has it."""

    adjacency: Tensor
    features: Tensor
    labels: Tensor
    split: Tensor


def dense(folder: Path) -> Dense:
    indptr, indices, features, labels, split = (
        np.load(folder / f"{name}.npy") for name in ("indptr", "indices", "features", "labels", "split")
    )
    adjacency = torch.zeros(len(labels), len(labels), dtype=torch.float64)
    adjacency[np.repeat(np.arange(len(labels)), np.diff(indptr)), indices] = 1
    features, labels, split = (torch.from_numpy(array) for array in (features, labels, split))
    return Dense(adjacency, features.double(), labels, split)


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
        self, data: Dense, state: State, optimizer: Callable[..., torch.optim.Optimizer], lr: float, stream: int
    ) -> None:
        self._data, self._stream, self._nodes = data, stream, (data.split == TRAIN).nonzero().view(-1).numpy()
        self._learned = {name: nn.Parameter(value.clone()) for name, value in state.items() if "running" not in name}
        self._optimizer = optimizer(self._learned.values(), lr=lr)

    @torch.enable_grad()
    def steps(self, model: str, start: State, round_: int, count: int, batch_size: int) -> State:
        """Lines 3 to 10, or 12 to 17."""
        rng = seeding.generator(SEED, self._stream, round_)
        seeding.torch_seed(rng)
        state = {name: value.clone() for name, value in start.items()}
        for name, parameter in self._learned.items():
            parameter.data.copy_(start[name])
            state[name] = parameter
        for _ in range(count):
            chosen = torch.zeros(len(self._data.labels), dtype=torch.bool)
            chosen[rng.choice(self._nodes, min(batch_size, len(self._nodes)), replace=False)] = True
            rng.integers(2**31)
            loss = functional.cross_entropy(
                logits(model, state, self._data, chosen, "train"), self._data.labels[chosen]
            )
            self._optimizer.zero_grad()
            loss.backward()
            self._optimizer.step()
        return {name: value.detach().clone() for name, value in state.items()}


@torch.no_grad()
def algorithm_2(
    model: str, store: Path, state: State, optimizer: Callable[..., torch.optim.Optimizer], statistics: str
) -> tuple[list[tuple[float, float, float]], State]:
    """(training loss, validation and test score of every round; the last model as it was evaluated)."""
    full = dense(store / "global")
    machines = [
        Worker(dense(store / f"part{part}"), state, optimizer, LOCAL_LR, seeding.part_stream(part))
        for part in range(MACHINES)
    ]
    server = Worker(full, state, optimizer, SERVER_LR, seeding.SERVER_STREAM)
    curve, evaluated = list[tuple[float, float, float]](), state
    for round_, steps in enumerate(STEPS, start=1):
        local = [machine.steps(model, state, round_, steps, LOCAL_BATCH) for machine in machines]
        state = {name: torch.stack([one[name] for one in local]).mean(dim=0) for name in state}  # line 11
        state = server.steps(model, state, round_, CORRECTIONS, SERVER_BATCH)
        evaluated = dict(state)
        output = logits(model, evaluated, full, torch.ones(len(full.labels), dtype=torch.bool), statistics)
        val, test = (
            (output.argmax(dim=1) == full.labels)[full.split == split].double().mean().item() for split in (VAL, TEST)
        )
        train = full.split == TRAIN
        curve.append((functional.cross_entropy(output[train], full.labels[train]).item(), val, test))
    return curve, evaluated


@pytest.mark.parametrize(("optimizer", "statistics"), [("sgd", "average"), ("adam", "recalibrate")])
@pytest.mark.parametrize("model", ["gcn", "sage", "gat", "appnp"])
def test_three_rounds_are_those_of_algorithm_2(model: str, optimizer: str, statistics: str, tmp_path: Path) -> None:
    """With Adam the curves alone: a bias before BatchNorm has no gradient but rounding, which Adam makes a step of."""
    overrides = ["experiment=tiny", "dataset.nodes=200", f"dataset.features={FEATURES}", f"dataset.classes={CLASSES}"]
    overrides += ["partition=random", "algorithm=llcg", f"algorithm.S={CORRECTIONS}"]
    overrides += ["algorithm.K=4", "algorithm.rho=1.3", f"num_rounds={len(STEPS)}", f"seed={SEED}"]
    overrides += [f"model={model}", "model.dropout=0", "sampling.fanout=-1", f"cluster.num_machines={MACHINES}"]
    overrides += [f"train.local_lr={LOCAL_LR}", f"train.server_lr={SERVER_LR}", f"train.optimizer={optimizer}"]
    overrides += [f"train.local_batch_size={LOCAL_BATCH}", f"train.server_batch_size={SERVER_BATCH}"]
    overrides += [f"algorithm.batchnorm_stats={statistics}", f"partition.root={tmp_path}/parts"]
    run = on_loopback(tmp_path, "run", *overrides)

    config = load_config(overrides)
    seeding.seed_torch(seeding.generator(SEED, seeding.INITIAL_WEIGHTS_STREAM, 0))
    initial = build_model(config.model, FEATURES, CLASSES).state_dict()
    start = {name: value.double() for name, value in initial.items() if value.is_floating_point()}
    kind = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}[optimizer]
    curve, expected = algorithm_2(model, store_path(config), start, kind, statistics)

    found = [(row["train_loss"], row["val_score"], row["test_score"]) for row in rows(run)]
    assert [row["local_steps"] for row in rows(run)] == STEPS
    torch.testing.assert_close(torch.tensor(found), torch.tensor(curve), rtol=0, atol=2e-6)
    assert curve[-1][0] < curve[0][0]
    if optimizer == "sgd":
        model_found = model_state(run)
        for name, value in expected.items():
            torch.testing.assert_close(model_found[name].double(), value, rtol=0, atol=2e-6)
