"""A round's steps depend on where they start, on (seed, stream, round), and on nothing that happened before."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from llcg_dist.config.model import ModelConfig
from llcg_dist.config.train import OptimizerState, TrainConfig
from llcg_dist.data.graph import TRAIN, Graph
from llcg_dist.data.rows import Array
from llcg_dist.data.views import GraphView
from llcg_dist.models.stages import GraphModel
from llcg_dist.sampling.minibatch import Sample
from llcg_dist.sampling.neighbor import NeighborSampler
from llcg_dist.training.flat_vector import flatten, load_flat
from llcg_dist.training.loss import loss
from llcg_dist.training.trainer import StepSettings, Trainer
from tests.helpers.graphs import community_graph
from tests.helpers.models import staged_model

GRAPH = community_graph()
STEPS = StepSettings(stream=2, seed=5, batch_size=16, lr=1e-2)


def new_model(arch: str = "SBS", dropout: float = 0.5) -> GraphModel:
    torch.manual_seed(0)
    return staged_model(ModelConfig(arch=arch, hidden=8, dropout=dropout), GRAPH.num_features, GRAPH.num_classes)


def trainer(
    step_settings: StepSettings = STEPS, train: TrainConfig | None = None, model: GraphModel | None = None
) -> Trainer:
    model = model or new_model()
    sampler = NeighborSampler(GRAPH, [3] * model.depth)
    return Trainer(GraphView(GRAPH), model, sampler, step_settings, train or TrainConfig())


START = flatten(new_model())


def stepped(one: Trainer, round_: int = 1, steps: int = 4, start: Tensor = START) -> Tensor:
    one.run_steps(start, round_, steps)
    return one.theta().clone()


def test_steps_repeat_themselves_to_the_last_bit() -> None:
    assert torch.equal(stepped(trainer()), stepped(trainer()))
    assert not torch.equal(stepped(trainer()), START)


def test_what_ran_before_does_not_matter() -> None:
    """Other machines in the same process, other generators, other rounds of a trainer that keeps no state."""
    alone = stepped(trainer(), round_=3)
    sgd = TrainConfig(optimizer="sgd")
    alone_sgd = stepped(trainer(train=sgd), round_=3)
    np.random.seed(9)
    torch.manual_seed(123)
    other = trainer(replace(STEPS, stream=3))
    stepped(other, round_=1)
    stepped(other, round_=2)
    torch.rand(17)
    assert torch.equal(stepped(trainer(), round_=3), alone)
    busy = trainer(train=sgd)
    for round_ in (1, 2):
        stepped(busy, round_)
        stepped(other, round_)
    assert torch.equal(stepped(busy, round_=3), alone_sgd)


@pytest.mark.parametrize(("round_", "steps"), [(3, 2), (3, 9), (2, 4)])
def test_batches_drawn_ahead_change_no_bit(round_: int, steps: int) -> None:
    """Fewer than the round takes, more, or those of a round that never comes."""
    early = trainer()
    early.prefetch(round_, steps)
    assert torch.equal(stepped(early, round_=3), stepped(trainer(), round_=3))
    again = trainer(train=TrainConfig(optimizer="sgd"))
    again.prefetch(3, steps)
    assert torch.equal(stepped(again, round_=3), stepped(again, round_=3))  # drawn for one round, not for the next


@pytest.mark.parametrize("other", [replace(STEPS, stream=3), replace(STEPS, seed=6)], ids=["stream", "seed"])
def test_another_stream_or_seed_draws_otherwise(other: StepSettings) -> None:
    assert not torch.equal(stepped(trainer(other)), stepped(trainer()))


def test_another_round_draws_otherwise() -> None:
    assert not torch.equal(stepped(trainer(), round_=2), stepped(trainer(), round_=1))


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_state_kept_or_reset(optimizer: str) -> None:
    """Adam's moments outlive a round unless they are reset; plain SGD has none."""

    def second_round(state: str) -> Tensor:
        one = trainer(train=TrainConfig(optimizer=optimizer, optimizer_state=OptimizerState(state)))
        stepped(one, round_=1)
        return stepped(one, round_=2)

    fresh = stepped(trainer(train=TrainConfig(optimizer=optimizer)), round_=2)
    assert torch.equal(second_round("reset"), fresh)
    assert torch.equal(second_round("keep"), fresh) == (optimizer == "sgd")


def test_the_start_is_left_as_it_was() -> None:
    start = START.clone()
    end = stepped(trainer(), start=start)
    assert torch.equal(start, START)
    one = trainer()
    first = stepped(one)
    assert torch.equal(one.theta(), first)
    assert end.shape == START.shape


def test_no_steps_lead_nowhere() -> None:
    one = trainer()
    one.run_steps(START, 1, 0)
    assert torch.equal(one.theta(), START)
    assert one.mean_loss() is None


class Recording:
    """The real sampler, with a note of what it was asked."""

    def __init__(self, graph: Graph, fanouts: list[int]) -> None:
        self.sampler = NeighborSampler(graph, fanouts)
        self.asked: list[tuple[list[int], int]] = []

    def sample(self, seeds: Array, seed: int) -> Sample:
        self.asked.append((seeds.tolist(), seed))
        return self.sampler.sample(seeds, seed)


@pytest.mark.parametrize("batch_size", [1, 16, 60, 1000])
def test_batches_are_distinct_training_nodes_drawn_anew_for_every_step(batch_size: int) -> None:
    training = GRAPH.nodes_in(TRAIN).tolist()
    assert len(training) == 60
    model, notes = new_model("SS"), Recording(GRAPH, [3, 3])
    Trainer(GraphView(GRAPH), model, notes, replace(STEPS, batch_size=batch_size), TrainConfig()).run_steps(
        flatten(model), 1, 5
    )
    assert len(notes.asked) == 5
    for seeds, _ in notes.asked:
        assert len(seeds) == len(set(seeds)) == min(batch_size, 60)
        assert set(seeds) <= set(training)
    assert len({tuple(seeds) for seeds, _ in notes.asked}) == 5
    assert len({seed for _, seed in notes.asked}) == 5


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


def test_a_shift_of_zero_changes_no_bit() -> None:
    none = trainer(replace(STEPS, logit_shift=torch.zeros(GRAPH.num_classes)))
    assert torch.equal(stepped(none), stepped(trainer()))


@pytest.mark.parametrize("optimizer", ["adam", "sgd", "torch.optim.Adagrad", "torch.optim.Rprop"])
def test_another_trainer_goes_on_with_the_moments_of_this_one(optimizer: str) -> None:
    train = TrainConfig(optimizer=optimizer)
    one, other, fresh = (trainer(train=train) for _ in range(3))
    stepped(one)
    moments = [vector.clone() for vector in one.moments()]
    assert all(len(vector) <= len(START) for vector in moments)
    other.load_moments(moments)
    assert torch.equal(stepped(other, round_=2), stepped(one, round_=2))
    assert torch.equal(stepped(fresh, round_=2), stepped(trainer(train=train), round_=2))
    assert bool(moments) == (optimizer != "sgd")
