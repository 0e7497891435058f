"""A method of the user's own that keeps something from round to round: it is in the checkpoints of its rank."""

from pathlib import Path

import pytest

from llcg_dist.algorithms.registry import build_algorithm
from llcg_dist.config.compose import load_config
from llcg_dist.errors import UserError
from tests.helpers.resuming import assert_undisturbed
from tests.helpers.run_files import model_bytes
from tests.helpers.stateful_method import ServerMomentum
from tests.helpers.stopping import stopped
from tests.helpers.training import TINY, on_loopback

HELPERS = "tests.helpers.stateful_method"


def own(name: str) -> list[str]:
    return ["algorithm=own", f"algorithm.target={HELPERS}.{name}"]


def test_momentum_of_ones_own_is_that_of_the_server_optimizer(tmp_path: Path) -> None:
    ours = on_loopback(tmp_path, "ours", *TINY, "algorithm=psgd_pa", "algorithm.server_optimizer=momentum")
    theirs = on_loopback(tmp_path, "theirs", *TINY, *own("ServerMomentum"))
    plain = on_loopback(tmp_path, "plain", *TINY, "algorithm=psgd_pa")
    assert model_bytes(theirs) == model_bytes(ours) != model_bytes(plain)


@pytest.mark.parametrize("name", ["ServerMomentum", "BothMomenta"])
def test_it_goes_on_with_the_bits_of_a_run_that_was_not_stopped(tmp_path: Path, name: str) -> None:
    job = [*TINY, *own(name), "num_rounds=6"]
    whole = on_loopback(tmp_path, "whole", *job)
    stopped(tmp_path, "halved", 3, *job)
    assert_undisturbed(on_loopback(tmp_path, "halved", *job), whole)


def test_a_checkpoint_without_it_is_refused(tmp_path: Path) -> None:
    """As a class has written it that did not save its state yet."""
    job = [*TINY, *own("ServerMomentum")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ServerMomentum, "state_dict", lambda self: {})
        stopped(tmp_path, "run", 3, *job)
    with pytest.raises(UserError, match=r"checkpoint of .*, round \d+: does not fit this run \('momentum'\)"):
        on_loopback(tmp_path, "run", *job)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("SavesOnly", "must have both state_dict and load_state_dict, or neither"),
        ("KeepsArrays", "state_dict returned a ndarray: a checkpoint holds a dict of tensors, numbers, text"),
    ],
)
def test_what_no_run_could_go_on_with_is_refused(name: str, says: str) -> None:
    with pytest.raises(UserError, match=rf"^algorithm.target={HELPERS}.{name}: {says}"):
        build_algorithm(load_config(own(name))).state_dict()
