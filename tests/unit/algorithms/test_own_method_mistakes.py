"""A method of one's own with a mistake is refused in one line, before the first round where that can be."""

from pathlib import Path

import pytest

from llcg_dist.algorithms.registry import build_algorithm
from llcg_dist.config.compose import load_config
from llcg_dist.errors import TrainingError, UserError
from tests.helpers.training import TINY, on_loopback

HELPERS = "tests.helpers.own_method_mistakes"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("Forgetful", r"has no config, .*; its __init__ must call super\(\).__init__\(config\)$"),
        ("EarlyReader", r"__init__ failed \('EarlyReader' object has no attribute 'config'\); call super\(\)"),
        ("FussyOptions", r"refused its options \(none\): mu must not be below 0$"),
        ("ReadsFile", r"__init__ failed \(FileNotFoundError: .* 'no/such/file', own_method_mistakes.py line \d+\)$"),
        ("TooFewArguments", r"local_gradient must take \(self, gradient, theta, start\)$"),
    ],
)
def test_it_is_refused_as_it_is_built(name: str, says: str) -> None:
    with pytest.raises(UserError, match=rf"^algorithm.target={HELPERS}.{name}: {says}"):
        build_algorithm(load_config(["algorithm=own", f"algorithm.target={HELPERS}.{name}"]))


def test_a_method_with_messages_of_its_own_has_no_stand_in() -> None:
    """The server would take local steps without what those messages bring."""
    goes_on = ["algorithm=own", f"algorithm.target={HELPERS}.Talkative", "cluster.on_loss=go_on"]
    with pytest.raises(
        UserError, match=r"^cluster.stand_in=True: must be false with cluster.on_loss=go_on: the server"
    ):
        build_algorithm(load_config(goes_on))
    build_algorithm(load_config([*goes_on, "cluster.stand_in=false"]))


def test_a_model_that_is_not_finite_is_its_aggregates(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"NotFinite: aggregate returned a model that is not finite"):
        on_loopback(tmp_path, "run", *TINY, "algorithm=own", f"algorithm.target={HELPERS}.NotFinite")


def test_a_server_optimizer_that_diverges_is_named(tmp_path: Path) -> None:
    step = ["algorithm=psgd_pa", "algorithm.server_optimizer=momentum", "algorithm.server_step=1e40"]
    with pytest.raises(TrainingError, match=r"the server's step diverged \(momentum\); lower algorithm.server_step$"):
        on_loopback(tmp_path, "run", *TINY, *step)
