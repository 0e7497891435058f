"""Python values arrive in the settings as they are, and classes and functions by their paths."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from llcg_dist.api.settings import (
    data_overrides,
    given_settings,
    overrides_of,
    require_importable,
    target_overrides,
)
from llcg_dist.config.compose import load_config
from llcg_dist.config.targets import resolve
from llcg_dist.errors import UserError
from tests.helpers.own_method import CoordinateMedian

SCALARS = st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats(allow_nan=False) | st.text(max_size=8)


def options_of(values: dict[str, Any]) -> dict[str, Any]:
    """The values as keyword arguments of a model of one's own."""
    return load_config(["model=own", "model.target=a.b", *overrides_of({"model.options": values})]).model.options


@settings(max_examples=8)
@given(st.lists(SCALARS | st.lists(SCALARS, max_size=3), max_size=12))
def test_any_value_arrives_as_it_is(values: list[Any]) -> None:
    """Many at a time, because composing the settings takes long."""
    named = {f"value_{i}": value for i, value in enumerate(values)}
    assert options_of(named) == named


def test_values_that_are_written_otherwise() -> None:
    given = {"path": Path("a b/c"), "number": np.float32(0.5), "count": torch.tensor(3), "pair": (1, "x, y=${z}")}
    assert options_of(given) == {"path": "a b/c", "number": 0.5, "count": 3, "pair": [1, "x, y=${z}"]}
    assert options_of({"inner": {"deep": {"a": 1}}}) == {"inner": {"deep": {"a": 1}}}
    with pytest.raises(UserError, match=r"^model.options.a: a set cannot be a setting"):
        options_of({"a": {1, 2}})


def test_keys_of_all_kinds() -> None:
    given = {"algorithm": {"K": 8}, "sampling.fanout": [5, 4], "model.arch": None, "train.local_lr": 1e-05}
    config = load_config(overrides_of(given | {"evaluate.both_statistics": True, "run_dir": Path("my runs/a'b")}))
    assert config.algorithm.K == 8
    assert config.sampling.fanout == [5, 4]
    assert config.model.arch is None
    assert config.train.local_lr == 1e-05
    assert config.evaluate.both_statistics is True
    assert config.run_dir == "my runs/a'b"


@pytest.mark.parametrize("overrides", [["cluster.backend=loopback"], "cluster.backend=loopback", []])
def test_overrides_are_a_mapping(overrides: Any) -> None:
    rule = 'must be a mapping, such as {"cluster.backend": "loopback"}, not a'
    with pytest.raises(UserError, match=f"^overrides: {rule} (list|str)$"):
        given_settings(overrides)
    assert given_settings(None) == {}


def test_data_that_is_spelled_out() -> None:
    named = ["dataset=files", "dataset.edges=my edges.csv"]
    assert data_overrides("dataset=files 'dataset.edges=my edges.csv'") == named
    assert data_overrides(named) == named
    assert data_overrides([]) is None
    assert data_overrides([1]) is None


@pytest.mark.parametrize("data", ["Cora", "dataset=pyg data.pt"])
def test_text_that_is_no_setting(data: str) -> None:
    with pytest.raises(UserError, match=r"^(Cora|data.pt): is no setting \(key=value\); give a graph, or settings"):
        data_overrides(data)


def test_a_quote_that_is_not_closed() -> None:
    with pytest.raises(UserError, match=r"^dataset='my: cannot be read as settings \(No closing quotation\)"):
        data_overrides("dataset='my")


def test_presets_and_paths() -> None:
    assert target_overrides("model", None) == []
    assert load_config(target_overrides("model", "gcn")).model.name == "gcn"
    for median in (CoordinateMedian, "tests.helpers.own_method.CoordinateMedian"):
        config = load_config(target_overrides("algorithm", median))
        assert (config.algorithm.name, config.algorithm.target) == ("own", "tests.helpers.own_method.CoordinateMedian")
        require_importable(config)


class Main(torch.nn.Module):
    """As if it had been defined in a notebook."""


Main.__module__ = "__main__"


@pytest.mark.parametrize("thing", [Main, lambda in_channels: None, type("Local", (), {})])
def test_what_other_processes_cannot_import(thing: Any) -> None:
    config = load_config(target_overrides("model", thing))
    assert resolve("model.target", str(config.model.target)) is thing
    with pytest.raises(UserError, match=r"^model: .* exists in this process only.*cluster.backend.*loopback"):
        require_importable(config)


def test_a_built_model_is_refused() -> None:
    with pytest.raises(UserError, match=r"^model: give the class Linear, not one of its objects"):
        target_overrides("model", torch.nn.Linear(1, 1))
