"""A walk depends on where it starts, on (seed, who, round), and on nothing that happened before."""

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from llcg_dist.config.schema import ModelConfig, TrainConfig
from llcg_dist.core.learner import Learner, Walker
from llcg_dist.core.objective import loss
from llcg_dist.core.parameters import flatten, load_flat
from llcg_dist.data.graph import TRAIN, Graph
from llcg_dist.data.rows import Array
from llcg_dist.data.views import GraphView
from llcg_dist.models import build_model
from llcg_dist.models.stages import GraphModel
from llcg_dist.sampling import Batch, NeighborSampler
from tests.unit.graphs import community_graph

GRAPH = community_graph()
WALKER = Walker(who=2, seed=5, batch_size=16, lr=1e-2)


def new_model(arch: str = "SBS", dropout: float = 0.5) -> GraphModel:
    torch.manual_seed(0)
    return build_model(ModelConfig(arch=arch, hidden=8, dropout=dropout), GRAPH.num_features, GRAPH.num_classes)


def learner(walker: Walker = WALKER, train: TrainConfig | None = None, **of_model: Any) -> Learner:
    model = new_model(**of_model)
    return Learner(GraphView(GRAPH), model, NeighborSampler(GRAPH, [3] * model.depth), walker, train or TrainConfig())


START = flatten(new_model())


def walked(one: Learner, round_: int = 1, steps: int = 4, start: Tensor = START) -> Tensor:
    return one.walk(start, round_, steps)[0]


def test_a_walk_repeats_itself_to_the_last_bit() -> None:
    assert torch.equal(walked(learner()), walked(learner()))
    assert not torch.equal(walked(learner()), START)


def test_what_ran_before_does_not_matter() -> None:
    """Other machines in the same process, other generators, other rounds of a learner that keeps no state."""
    alone = walked(learner(), round_=3)
    sgd = TrainConfig(optimizer="sgd")
    alone_sgd = walked(learner(train=sgd), round_=3)
    np.random.seed(9)
    torch.manual_seed(123)
    other = learner(replace(WALKER, who=3))
    walked(other, round_=1)
    walked(other, round_=2)
    torch.rand(17)
    assert torch.equal(walked(learner(), round_=3), alone)
    busy = learner(train=sgd)
    for round_ in (1, 2):
        walked(busy, round_)
        walked(other, round_)
    assert torch.equal(walked(busy, round_=3), alone_sgd)


@pytest.mark.parametrize(("round_", "steps"), [(3, 2), (3, 9), (2, 4)])
def test_batches_drawn_ahead_change_no_bit(round_: int, steps: int) -> None:
    """Fewer than the walk takes, more, or those of a round that never comes."""
    early = learner()
    early.draw_ahead(round_, steps)
    assert torch.equal(walked(early, round_=3), walked(learner(), round_=3))
    again = learner(train=TrainConfig(optimizer="sgd"))
    again.draw_ahead(3, steps)
    assert torch.equal(walked(again, round_=3), walked(again, round_=3))  # drawn for one walk, not for the next


@pytest.mark.parametrize("change", [{"who": 3}, {"seed": 6}])
def test_another_walker_draws_otherwise(change: dict[str, int]) -> None:
    assert not torch.equal(walked(learner(replace(WALKER, **change))), walked(learner()))


def test_another_round_draws_otherwise() -> None:
    assert not torch.equal(walked(learner(), round_=2), walked(learner(), round_=1))


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_state_kept_or_reset(optimizer: str) -> None:
    """Adam's moments outlive a round unless they are reset; plain SGD has none."""

    def second_round(state: str) -> Tensor:
        one = learner(train=TrainConfig(optimizer=optimizer, optimizer_state=state))
        walked(one, round_=1)
        return walked(one, round_=2)

    fresh = walked(learner(train=TrainConfig(optimizer=optimizer)), round_=2)
    assert torch.equal(second_round("reset"), fresh)
    assert torch.equal(second_round("keep"), fresh) == (optimizer == "sgd")


def test_the_start_is_left_as_it_was() -> None:
    start = START.clone()
    end = walked(learner(), start=start)
    assert torch.equal(start, START)
    one = learner()
    first = walked(one)
    kept = first.clone()
    walked(one, round_=2)
    assert torch.equal(first, kept)  # the result is a copy, not the model's own memory
    assert end.shape == START.shape


def test_no_steps_lead_nowhere() -> None:
    theta, mean_loss = learner().walk(START, 1, 0)
    assert torch.equal(theta, START)
    assert mean_loss is None


class Recording:
    """The real sampler, with a note of what it was asked."""

    def __init__(self, graph: Graph, fanouts: list[int]) -> None:
        self.sampler, self.asked = NeighborSampler(graph, fanouts), []

    def sample(self, seeds: Array, seed: int) -> Batch:
        self.asked.append((seeds.tolist(), seed))
        return self.sampler.sample(seeds, seed)


@pytest.mark.parametrize("batch_size", [1, 16, 60, 1000])
def test_batches_are_distinct_training_nodes_drawn_anew_for_every_step(batch_size: int) -> None:
    training = GRAPH.nodes_in(TRAIN).tolist()
    assert len(training) == 60
    model, notes = new_model("SS"), Recording(GRAPH, [3, 3])
    Learner(GraphView(GRAPH), model, notes, replace(WALKER, batch_size=batch_size), TrainConfig()).walk(
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
    walker = replace(WALKER, batch_size=1000, lr=0.3)
    found, mean_loss = Learner(GraphView(GRAPH), model, NeighborSampler(GRAPH, [-1, -1]), walker, train).walk(
        theta, 1, 1
    )

    beside = new_model("GG", dropout=0.0)
    load_flat(beside, theta)
    nodes = GRAPH.nodes_in(TRAIN)
    batch = NeighborSampler(GRAPH, [-1, -1]).sample(nodes, 0)
    logits = beside(torch.from_numpy(GRAPH.features)[batch.inputs.long()], batch.blocks)
    expected_loss = loss(logits, torch.from_numpy(GRAPH.labels[nodes]), GRAPH.task)
    expected_loss.backward()
    gradient = torch.cat([parameter.grad.reshape(-1) for parameter in beside.parameters()])
    torch.testing.assert_close(found, theta - 0.3 * (gradient + 0.1 * theta), rtol=1e-5, atol=1e-6)
    assert mean_loss == pytest.approx(expected_loss.item(), rel=1e-5)


def test_steps_learn() -> None:
    losses = [learner().walk(START, 1, steps)[1] for steps in (1, 80)]
    assert losses[1] < losses[0]


def test_a_step_goes_as_far_as_its_place_in_the_run_says() -> None:
    """SGD moves by lr·factor·gradient; the factor of round 3, step 0 is asked for, then step 1."""
    asked: list[tuple[int, int]] = []

    def factor(round_: int, step: int) -> float:
        asked.append((round_, step))
        return 0.25

    sgd, of_model = TrainConfig(optimizer="sgd"), {"arch": "SS", "dropout": 0.0}
    start = flatten(new_model(**of_model))
    whole = walked(learner(train=sgd, **of_model), round_=3, steps=1, start=start) - start
    slowed = learner(replace(WALKER, lr_factor=factor), sgd, **of_model)
    torch.testing.assert_close(walked(slowed, 3, 1, start) - start, whole * 0.25, rtol=1e-4, atol=1e-7)
    walked(slowed, round_=4, steps=2, start=start)
    assert asked == [(3, 0), (4, 0), (4, 1)]


def test_the_rate_of_a_round_is_not_remembered() -> None:
    """Adam's loaded state carries the rate that it was saved with; the place in the run decides."""

    def by_round(round_: int, step: int) -> float:
        return 1.0 / round_

    slowing = replace(WALKER, lr_factor=by_round)
    undisturbed = learner(slowing)
    middle = walked(undisturbed, round_=1)
    state = copy.deepcopy(undisturbed.optimizer_state())
    resumed = learner(slowing)
    resumed.load_optimizer_state(state)
    assert torch.equal(walked(resumed, 2, start=middle), walked(undisturbed, 2, start=middle))


def test_the_shift_enters_the_loss_and_nothing_else() -> None:
    none = learner(replace(WALKER, logit_shift=torch.zeros(GRAPH.num_classes)))
    assert torch.equal(walked(none), walked(learner()))
    shift = torch.tensor([0.0, -2.0, 1.0])
    shifted = learner(replace(WALKER, logit_shift=shift))
    found, found_loss = shifted.walk(START, 1, 1)
    _, plain_loss = learner().walk(START, 1, 1)
    assert not torch.equal(found, walked(learner(), steps=1))
    assert found_loss != plain_loss
