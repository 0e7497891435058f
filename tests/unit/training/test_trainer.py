"""A round's steps depend on where they start, on (seed, stream, round), and on nothing that happened before."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from llcg_dist.config.train import OptimizerState, TrainConfig
from llcg_dist.data.graph import TRAIN
from llcg_dist.data.views import GraphView
from llcg_dist.training.flat_vector import flatten
from llcg_dist.training.trainer import StepSettings, Trainer
from tests.helpers.small_trainer import GRAPH, START, STEPS, Recording, new_model, stepped, trainer


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


@pytest.mark.parametrize("lr", [1e-2, float("inf")])
def test_a_method_hears_where_finite_steps_led(lr: float) -> None:
    """What is not finite, and is no update, it would keep."""
    heard: list[Tensor] = []
    one = trainer(replace(STEPS, lr=lr, after_steps=lambda theta, start: heard.extend([theta, start])))
    end = stepped(one)
    assert [len(vector) for vector in heard] == ([one.num_learned] * 2 if lr < 1 else [])
    assert bool(end.isfinite().all()) == (lr < 1) == bool(heard)


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
