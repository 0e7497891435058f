"""A machine answers requests: the local steps of Algorithm 2, a gradient to measure, and nothing it does not know."""

from pathlib import Path

import pytest
import torch

from llcg_dist.algorithms.registry import build_algorithm
from llcg_dist.comm.messages import Finish, Gradient, Measure, Message, Train, Trained
from llcg_dist.config.compose import load_config
from llcg_dist.data.views import GraphView
from llcg_dist.errors import ProtocolError
from llcg_dist.job.machine import Machine
from llcg_dist.job.machine_factory import OpenPart, build_machine
from llcg_dist.job.start import Start
from llcg_dist.models import build_model
from llcg_dist.training.flat_vector import flatten
from tests.helpers.graphs import community_graph

GRAPH = community_graph(90)


def machine(folder: Path, *overrides: str, start: int = 0) -> tuple[Machine, torch.Tensor]:
    """A machine on the graph above, and a model to start from."""
    settings = ["model.hidden=8", "train.local_batch_size=16", "num_rounds=4", "algorithm.K=3", "algorithm=psgd_pa"]
    config = load_config([*settings, *overrides])
    torch.manual_seed(0)
    theta = flatten(build_model(config.model, GRAPH.num_features, GRAPH.num_classes))
    part = OpenPart(config, build_algorithm(config), 1, GraphView(GRAPH), folder)
    built = build_machine(part, Start(start, config.num_rounds))[0]
    assert isinstance(built, Machine)
    return built, theta


def trained(answering: Machine, theta: torch.Tensor, round_: int) -> Message:
    reply = answering.handle(Train(round_, theta.clone()))
    assert isinstance(reply, Trained)
    answering.after_reply()
    return reply


def test_local_steps_depend_on_the_model_and_the_round_alone(tmp_path: Path) -> None:
    one, theta = machine(tmp_path / "one", "train.optimizer=sgd")
    other, _ = machine(tmp_path / "other", "train.optimizer=sgd")
    first = trained(one, theta, 1).vector.clone()
    trained(other, theta + 1, 2)
    assert torch.equal(trained(other, theta, 1).vector, first)
    assert not torch.equal(trained(one, theta, 2).vector, first)


def test_stats_tell_of_the_round(tmp_path: Path) -> None:
    answering, theta = machine(tmp_path, "algorithm.rho=1.5")
    for round_ in (1, 2):
        stats = trained(answering, theta, round_).stats
        assert stats is not None
        assert stats.steps == answering.local_steps(round_)
        assert 0 < stats.train_loss < 10
        assert stats.seconds_local > 0
        assert stats.checkpoint_round == round_ - 1  # the newest that is surely on the disk


def test_a_resumed_machine_goes_on_with_its_optimiser(tmp_path: Path) -> None:
    answering, theta = machine(tmp_path)
    for round_ in (1, 2, 3):
        last = trained(answering, theta, round_).vector.clone()
    answering.handle(Finish(3))
    resumed, _ = machine(tmp_path, start=2)
    assert torch.equal(trained(resumed, theta, 3).vector, last)
    fresh, _ = machine(tmp_path / "fresh")
    assert not torch.equal(trained(fresh, theta, 3).vector, last)  # Adam's moments matter


def test_parameters_that_are_not_finite_are_sent_and_the_optimiser_is_reset(tmp_path: Path) -> None:
    answering, theta = machine(tmp_path)
    bad = trained(answering, torch.full_like(theta, float("nan")), 1)
    assert not bool(bad.vector.isfinite().any())
    good = trained(answering, theta, 2).vector.clone()
    fresh, _ = machine(tmp_path / "fresh")
    assert torch.equal(trained(fresh, theta, 2).vector, good)


def test_a_measurement_changes_nothing_that_is_learned(tmp_path: Path) -> None:
    measuring, theta = machine(tmp_path / "one", "diagnostics.every=1")
    plain, _ = machine(tmp_path / "other")
    reply = measuring.handle(Measure(1, theta))
    assert isinstance(reply, Gradient)
    assert reply.stats is None
    assert reply.vector.shape == (measuring.trainer.num_learned,)
    assert torch.equal(trained(measuring, theta, 1).vector, trained(plain, theta, 1).vector)


def test_a_request_that_its_method_does_not_know_is_refused(tmp_path: Path) -> None:
    class Surprise(Message): ...

    with pytest.raises(ProtocolError, match="does not answer Surprise"):
        machine(tmp_path)[0].handle(Surprise(1))
