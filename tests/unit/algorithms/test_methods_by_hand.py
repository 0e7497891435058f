"""Whole runs of what differs from Algorithm 2, against the same steps taken by hand (tests/helpers/by_the_paper.py)."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from llcg_dist import seeding
from llcg_dist.config.compose import load_config
from llcg_dist.data.partition import store_path
from tests.helpers.by_the_paper import (
    CLASSES,
    FEATURES,
    SEED,
    Dense,
    State,
    Worker,
    dense,
    dense_adjacency,
    initial_state,
    mean_of,
)
from tests.helpers.run_files import model_state
from tests.helpers.training import on_loopback

MACHINES, ROUNDS, STEPS, CORRECTIONS, LOCAL_BATCH, SERVER_BATCH = 3, 3, 3, 2, 20, 50
LOCAL, SERVER = partial(torch.optim.SGD, lr=0.1), partial(torch.optim.SGD, lr=0.15)
SETTINGS = [
    *("experiment=tiny", "dataset.nodes=200", f"dataset.features={FEATURES}", f"dataset.classes={CLASSES}"),
    *("model=sage", "model.dropout=0", "sampling.fanout=-1", f"seed={SEED}", f"cluster.num_machines={MACHINES}"),
    *(f"num_rounds={ROUNDS}", f"algorithm.K={STEPS}", "algorithm.rho=1", "algorithm.batchnorm_stats=average"),
    *("train.optimizer=sgd", "train.local_lr=0.1", "train.server_lr=0.15", "partition=random"),
    *(f"train.local_batch_size={LOCAL_BATCH}", f"train.server_batch_size={SERVER_BATCH}"),
]
LLCG = ["algorithm=llcg", f"algorithm.S={CORRECTIONS}"]


class ByHand:
    """The workers of a run, before its first step."""

    def __init__(self, store: Path, start: State) -> None:
        self.store, self.start, self.full = store, start, dense(store / "global")
        self.parts = [dense(store / f"part{part}") for part in range(MACHINES)]
        self.nodes = [torch.from_numpy(np.load(store / f"part{part}" / "nodes.npy")) for part in range(MACHINES)]
        self.assignment = torch.from_numpy(np.load(store / "global" / "assignment.npy"))

    def machine(self, part: int, data: Dense, nodes: Tensor | None = None) -> Worker:
        return Worker("sage", data, self.start, LOCAL, seeding.part_stream(part), nodes)

    def machines(self) -> list[Worker]:
        return [self.machine(part, data) for part, data in enumerate(self.parts)]

    def server(self, nodes: Tensor | None = None) -> Worker:
        return Worker("sage", self.full, self.start, SERVER, seeding.SERVER_STREAM, nodes)

    def run(self, machines: Sequence[Worker], server: Worker | None = None, batch_size: int = LOCAL_BATCH) -> State:
        """Algorithm 2 with these workers."""
        state = self.start
        for round_ in range(1, ROUNDS + 1):
            if machines:
                state = mean_of(machine.steps(state, round_, STEPS, batch_size) for machine in machines)
            if server:
                state = server.steps(state, round_, CORRECTIONS, SERVER_BATCH)
        return state


def single(by_hand: ByHand) -> State:
    """The full graph, and batches of P times as many nodes."""
    return by_hand.run([by_hand.machine(0, by_hand.full)], batch_size=MACHINES * LOCAL_BATCH)


def server_only(by_hand: ByHand) -> State:
    return by_hand.run([], by_hand.server())


def ggs(by_hand: ByHand) -> State:
    """Every machine draws of its own training nodes, and reads the full graph."""
    own = [nodes[part.train_nodes] for part, nodes in zip(by_hand.parts, by_hand.nodes, strict=True)]
    return by_hand.run([by_hand.machine(part, by_hand.full, nodes) for part, nodes in enumerate(own)])


def subgraph_approx(by_hand: ByHand) -> State:
    """A part's graph has a tenth more nodes, of other parts: all edges among them are there, and none is trained on."""
    views = []
    for number, part in enumerate(by_hand.parts):
        (folder,) = (path.parent for path in (by_hand.store / f"part{number}" / "halo").rglob("features.npy"))
        indptr, indices, features = (
            torch.from_numpy(np.load(folder / f"{name}.npy")) for name in ("indptr", "indices", "features")
        )
        assert len(features) == round(0.1 * len(part.labels))
        rows = (by_hand.full.features[None] == features[:, None].double()).all(dim=2).nonzero()[:, 1]
        assert not (by_hand.assignment[rows] == number).any()
        nodes = torch.cat([by_hand.nodes[number], rows])
        adjacency = dense_adjacency(indptr, indices)
        assert torch.equal(adjacency, by_hand.full.adjacency[nodes][:, nodes])
        views.append(Dense(adjacency, by_hand.full.features[nodes], by_hand.full.labels[nodes], part.split))
    return by_hand.run([by_hand.machine(part, view) for part, view in enumerate(views)])


def cut_edges(by_hand: ByHand) -> State:
    """The server draws of the training nodes that have a neighbour in another part."""
    elsewhere = by_hand.assignment[:, None] != by_hand.assignment[None, :]
    ends = (by_hand.full.adjacency * elsewhere).any(dim=1)
    nodes = by_hand.full.train_nodes
    assert 0 < ends[nodes].sum() < len(nodes)
    return by_hand.run(by_hand.machines(), by_hand.server(nodes[ends[nodes]]))


def beside(by_hand: ByHand) -> State:
    """The server begins where the machines do; its model has a weight of 0.75, but none in the running statistics."""
    machines, server, state = by_hand.machines(), by_hand.server(), by_hand.start
    for round_ in range(1, ROUNDS + 1):
        led_to = server.steps(state, round_, CORRECTIONS, SERVER_BATCH)
        average = mean_of(machine.steps(state, round_, STEPS, LOCAL_BATCH) for machine in machines)
        state = {
            name: value if "running" in name else 0.25 * value + 0.75 * led_to[name] for name, value in average.items()
        }
    return state


def calibrated(by_hand: ByHand) -> State:
    """log(local share / global share), one node more in every part, as the full graph has them."""
    machines, train = by_hand.machines(), by_hand.full.train_nodes
    shares = torch.bincount(by_hand.full.labels[train], minlength=CLASSES).double() / len(train)
    for machine, part in zip(machines, by_hand.parts, strict=True):
        counts = torch.bincount(part.labels[part.train_nodes], minlength=CLASSES)
        machine.shift = ((counts + shares) / (len(part.train_nodes) + 1) / shares).log()
    return by_hand.run(machines, by_hand.server())


def nesterov(by_hand: ByHand) -> State:
    """torch's SGD with Nesterov momentum, whose gradient is the way back from the average; then the correction."""
    machines, server, state = by_hand.machines(), by_hand.server(), by_hand.start
    learned = {name: value.clone() for name, value in state.items() if "running" not in name}
    outer = torch.optim.SGD(learned.values(), lr=1, momentum=0.9, nesterov=True)
    for round_ in range(1, ROUNDS + 1):
        average = mean_of(machine.steps(state, round_, STEPS, LOCAL_BATCH) for machine in machines)
        for name, value in learned.items():
            value.copy_(state[name]).grad = state[name] - average[name]
        outer.step()
        state = server.steps(average | learned, round_, CORRECTIONS, SERVER_BATCH)
    return state


def ema(by_hand: ByHand) -> State:
    """What is saved is Σ 0.7^(R−r)·θ_r over the rounds, with weights scaled to sum 1."""
    machines, server, state = by_hand.machines(), by_hand.server(), by_hand.start
    models = []
    for round_ in range(1, ROUNDS + 1):
        state = mean_of(machine.steps(state, round_, STEPS, LOCAL_BATCH) for machine in machines)
        state = server.steps(state, round_, CORRECTIONS, SERVER_BATCH)
        models.append(state)
    weights = [0.7 ** (ROUNDS - round_) for round_ in range(1, ROUNDS + 1)]
    return {
        name: sum((w * model[name] for w, model in zip(weights, models, strict=True)), torch.zeros(())) / sum(weights)
        for name in state
    }


OVERRIDES: dict[Callable[[ByHand], State], list[str]] = {
    single: ["algorithm=single"],
    server_only: ["algorithm=server_only", f"algorithm.S={CORRECTIONS}"],
    ggs: ["algorithm=ggs"],
    subgraph_approx: ["algorithm=subgraph_approx"],
    cut_edges: [*LLCG, "sampling.server_minibatch=cut_edges", "dataset.degree=2"],
    beside: [*LLCG, "algorithm.correction=beside"],
    calibrated: [*LLCG, "train.local_loss=calibrated"],
    nesterov: [*LLCG, "algorithm.server_optimizer=nesterov"],
    ema: [*LLCG, "evaluate.ema=0.7"],
}


@pytest.mark.parametrize("by_hand", OVERRIDES, ids=lambda function: function.__name__)
@torch.no_grad()
def test_the_last_model_is_the_one_made_by_hand(by_hand: Callable[[ByHand], State], tmp_path: Path) -> None:
    settings = [*SETTINGS, *OVERRIDES[by_hand], f"partition.root={tmp_path}/parts"]
    with torch.enable_grad():
        found = model_state(on_loopback(tmp_path, "run", *settings))
    config = load_config(settings)
    expected = by_hand(ByHand(store_path(config), initial_state(config)))
    for name, value in expected.items():
        torch.testing.assert_close(found[name].double(), value, rtol=0, atol=3e-6)
