"""Facts that follow from the settings of a method."""

import pytest

from llcg_dist.config.compose import load_config


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [([], True), (["algorithm.S=0"], False), (["algorithm.S=auto"], True), (["algorithm=psgd_pa"], False)],
)
def test_whether_the_server_corrects(overrides: list[str], expected: bool) -> None:
    assert load_config(overrides).algorithm.corrects is expected
