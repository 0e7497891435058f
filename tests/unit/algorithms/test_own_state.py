"""A method of the user's own that keeps something from round to round: it is in the checkpoints of its rank."""

from pathlib import Path

import pytest

from llcg_dist.algorithms.registry import build_algorithm
from llcg_dist.config.compose import load_config
from llcg_dist.errors import UserError
from tests.helpers.resuming import assert_undisturbed
from tests.helpers.run_files import model_bytes
from tests.helpers.stateful_method import ServerMomentum, WatchedSync
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


@pytest.mark.parametrize("name", ["ServerMomentum", "BothMomenta", "Drift"])
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
    with pytest.raises(
        UserError, match=r"load_state_dict failed over a checkpoint \(KeyError: 'momentum', \w+.py line \d"
    ):
        on_loopback(tmp_path, "run", *job)


def test_a_method_that_saves_and_does_not_load_is_refused() -> None:
    with pytest.raises(UserError, match=r"SavesOnly: must have both state_dict and load_state_dict, or neither"):
        build_algorithm(load_config(own("SavesOnly")))


@pytest.mark.parametrize(
    ("what", "named"),
    [
        ("array", r"numpy\S*_reconstruct"),
        ("fraction", "fractions.Fraction"),
        ("lambda", ".*lambda.*"),
        ("list", "a list"),
    ],
)
def test_what_no_checkpoint_can_be_read_with_is_refused(what: str, named: str) -> None:
    algorithm = build_algorithm(load_config([*own("KeepsObjects"), f"algorithm.options.what={what}"]))
    with pytest.raises(UserError, match=rf"KeepsObjects: state_dict returned {named}; a checkpoint holds"):
        algorithm.state_dict()


def test_what_torch_reads_may_be_kept() -> None:
    algorithm = build_algorithm(load_config([*own("KeepsObjects"), "algorithm.options.what=ordered"]))
    assert list(algorithm.state_dict()["counts"]) == ["a"]


def test_drift_that_weighs_nothing_is_plain_averaging(tmp_path: Path) -> None:
    plain = on_loopback(tmp_path, "plain", *TINY, "algorithm=psgd_pa", "num_rounds=2")
    alpha = "algorithm.options.alpha=0"
    for name, options in (("drift", []), ("none", [alpha])):
        on_loopback(tmp_path, name, *TINY, *own("Drift"), *options, "num_rounds=2")
    assert model_bytes(tmp_path / "none") == model_bytes(plain) != model_bytes(tmp_path / "drift")


def test_steps_that_all_machines_take_together_end_with_the_hook_too(tmp_path: Path) -> None:
    WatchedSync.seen.clear()
    on_loopback(tmp_path, "run", *TINY, *own("WatchedSync"), "num_rounds=2")
    assert len(WatchedSync.seen) == 2 * 2
    assert min(WatchedSync.seen) > 0
