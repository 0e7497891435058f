"""What a step does: gradient descent on the batch's mean loss, at the rate of its place in the run."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from llcg_dist.config.train import TrainConfig
from llcg_dist.data.graph import TRAIN
from llcg_dist.data.views import GraphView
from llcg_dist.sampling.neighbor import NeighborSampler
from llcg_dist.training.flat_vector import flatten, load_flat
from llcg_dist.training.loss import loss
from llcg_dist.training.trainer import Trainer
from tests.helpers.small_trainer import GRAPH, START, STEPS, Recording, new_model, stepped, trainer


def test_one_step_is_gradient_descent_on_the_mean_loss() -> None:
    """Full batch, all neighbours, no dropout, SGD: theta − lr·(gradient + decay·theta), worked out beside it."""
    model = new_model("GG", dropout=0.0)
    theta = flatten(model)
    train = TrainConfig(optimizer="sgd", weight_decay=0.1)
    step_settings = replace(STEPS, batch_size=1000, lr=0.3)
    one = Trainer(GraphView(GRAPH), model, NeighborSampler(GRAPH, [-1, -1]), step_settings, train)
    one.run_steps(theta, 1, 1)
    found, mean_loss = one.theta(), one.mean_loss()

    beside = new_model("GG", dropout=0.0)
    load_flat(beside, theta)
    nodes = GRAPH.nodes_in(TRAIN)
    batch = NeighborSampler(GRAPH, [-1, -1]).sample(nodes, 0)
    logits = beside(torch.from_numpy(GRAPH.features)[batch.nodes.long()], batch.blocks)
    expected_loss = loss(logits, torch.from_numpy(GRAPH.labels[nodes]), GRAPH.task)
    gradient = torch.cat([g.reshape(-1) for g in torch.autograd.grad(expected_loss, list(beside.parameters()))])
    torch.testing.assert_close(found, theta - 0.3 * (gradient + 0.1 * theta), rtol=1e-5, atol=1e-6)
    assert mean_loss == pytest.approx(expected_loss.item(), rel=1e-5)


def plain_loop(
    start: Tensor, asked: list[tuple[list[int], int]], train: TrainConfig, shift: Tensor | None = None
) -> tuple[Tensor, float]:
    """The same steps as anyone would write them: a batch, its loss, backward, torch's optimiser."""
    model, sampler = new_model(dropout=0.0).train(), NeighborSampler(GRAPH, [3, 3])
    load_flat(model, start)
    optimizers = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}
    optimizer = optimizers[train.optimizer](model.parameters(), lr=STEPS.lr, weight_decay=train.weight_decay)
    losses = []
    for seeds, seed in asked:
        batch = sampler.sample(np.array(seeds), seed)
        logits = model(torch.from_numpy(GRAPH.features)[batch.nodes.long()], batch.blocks)
        value = functional.cross_entropy(
            logits if shift is None else logits + shift, torch.from_numpy(GRAPH.labels)[torch.tensor(seeds)]
        )
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        losses.append(value.item())
    return flatten(model), sum(losses) / len(losses)


@pytest.mark.parametrize("shift", [None, torch.tensor([0.0, -2.0, 1.0])], ids=["plain", "shifted"])
@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_many_steps_are_those_of_a_plain_loop(optimizer: str, shift: Tensor | None) -> None:
    """With BatchNorm, whose statistics are part of the vector; `shift` enters the loss and nothing else."""
    train, notes = TrainConfig(optimizer=optimizer, weight_decay=0.1), Recording(GRAPH, [3, 3])
    settings = replace(STEPS, logit_shift=shift)
    one = Trainer(GraphView(GRAPH), new_model(dropout=0.0), notes, settings, train)
    one.run_steps(START, 1, 20)
    found, found_loss = one.theta(), one.mean_loss()
    expected, expected_loss = plain_loop(START, notes.asked, train, shift)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    assert found_loss == pytest.approx(expected_loss, rel=1e-5)


def test_a_step_goes_as_far_as_its_place_in_the_run_says() -> None:
    """SGD moves by lr·factor·gradient; the factor of round 3, step 0 is asked for, then step 1."""
    asked: list[tuple[int, int]] = []

    def factor(round_: int, step: int) -> float:
        asked.append((round_, step))
        return 0.25

    sgd, start = TrainConfig(optimizer="sgd"), flatten(new_model("SS", dropout=0.0))
    full = stepped(trainer(train=sgd, model=new_model("SS", dropout=0.0)), round_=3, steps=1, start=start) - start
    slowed = trainer(replace(STEPS, lr_factor=factor), sgd, new_model("SS", dropout=0.0))
    torch.testing.assert_close(stepped(slowed, 3, 1, start) - start, full * 0.25, rtol=1e-4, atol=1e-7)
    stepped(slowed, round_=4, steps=2, start=start)
    assert asked == [(3, 0), (4, 0), (4, 1)]


def test_the_rate_of_a_round_is_not_remembered() -> None:
    """Adam's loaded state carries the rate that it was saved with; the place in the run decides."""

    def by_round(round_: int, step: int) -> float:
        return 1.0 / round_

    slowing = replace(STEPS, lr_factor=by_round)
    undisturbed = trainer(slowing)
    middle = stepped(undisturbed, round_=1)
    state = copy.deepcopy(undisturbed.optimizer_state())
    resumed = trainer(slowing)
    resumed.load_optimizer_state(state)
    assert torch.equal(stepped(resumed, 2, start=middle), stepped(undisturbed, 2, start=middle))
