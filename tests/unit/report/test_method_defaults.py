"""What a method has where nobody sets it, as Hydra composes it."""

from pathlib import Path
from typing import Any

import pytest

from llcg_dist.config.compose import load_config
from llcg_dist.report.groups import studies
from llcg_dist.report.method_defaults import default_settings
from llcg_dist.report.runs import find_runs
from tests.helpers.run_records import write_run


@pytest.mark.parametrize("method", ["llcg", "llcg_plus", "psgd_pa"])
def test_the_defaults_are_those_that_are_composed(method: str) -> None:
    config = load_config([f"algorithm={method}"])
    found = default_settings(method)
    for key in ("algorithm.S", "sampling.server_fanout", "partition.method", "partition.balance", "train.lr_schedule"):
        section, name = key.split(".")
        assert found[key] == getattr(getattr(config, section), name), key


def test_a_method_of_ones_own_has_those_of_the_schema() -> None:
    assert default_settings("Mine")["algorithm.S"] == 0
    assert default_settings("Mine")["partition.method"] == "metis"


def test_what_a_preset_brings_is_in_no_label(tmp_path: Path) -> None:
    for method in ("llcg", "llcg_plus"):
        defaults = {key: str(value) if isinstance(value, str) else value for key, value in _brought(method).items()}
        write_run(tmp_path / method, [0.5], algorithm=method, settings={"algorithm.rho": 1.1} | defaults)
    (study,) = studies(find_runs([tmp_path]))
    assert [group.label for group in study.groups] == ["llcg", "llcg_plus"]


def _brought(method: str) -> dict[str, Any]:
    """What differs between the presets of two methods."""
    one, other = default_settings("llcg"), default_settings("llcg_plus")
    return {key: default_settings(method)[key] for key in one if one[key] != other[key] and key != "algorithm.name"}
