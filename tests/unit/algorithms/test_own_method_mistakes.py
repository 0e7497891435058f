"""A method of one's own that does not tell its base class the settings is refused in one line."""

import pytest

from llcg_dist.algorithms.registry import build_algorithm
from llcg_dist.config.compose import load_config
from llcg_dist.errors import UserError

HELPERS = "tests.helpers.own_method_mistakes"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("Forgetful", r"has no config, .*; its __init__ must call super\(\).__init__\(config\)$"),
        ("EarlyReader", r"__init__ failed \('EarlyReader' object has no attribute 'config'\); call super\(\)"),
    ],
)
def test_its_init_calls_that_of_its_base_class(name: str, says: str) -> None:
    with pytest.raises(UserError, match=rf"^algorithm.target={HELPERS}.{name}: {says}"):
        build_algorithm(load_config(["algorithm=own", f"algorithm.target={HELPERS}.{name}"]))
