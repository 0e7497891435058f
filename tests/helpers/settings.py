"""Settings to try rules and comparisons on: the defaults, changed one key at a time."""

import dataclasses
import importlib.resources
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from llcg_dist.algorithms.registry import build_algorithm
from llcg_dist.config.compose import load_config
from llcg_dist.config.schema import Config
from llcg_dist.errors import UserError

CONF = Path(str(importlib.resources.files("llcg_dist.conf")))
DEFAULT = load_config([])


def set_value(config: Config, key: str, value: Any) -> None:
    """Sets a dotted key in place, unchecked."""
    *groups, name = key.split(".")
    owner: Any = config
    for group in groups:
        owner = getattr(owner, group)
    assert hasattr(owner, name)
    setattr(owner, name, value)


def changed_default(**values: Any) -> Config:
    """A copy of the defaults with other values, unchecked; `__` stands for the dot of a key."""
    copy = dataclasses.replace(DEFAULT)
    for f in dataclasses.fields(copy):
        if dataclasses.is_dataclass(getattr(copy, f.name)):
            setattr(copy, f.name, dataclasses.replace(getattr(copy, f.name)))
    for name, value in values.items():
        set_value(copy, name.replace("__", "."), value)
    return copy


def refusal(overrides: Sequence[str]) -> str:
    """The message, of one line, with which these overrides are refused."""
    with pytest.raises(UserError) as refused:
        build_algorithm(load_config(overrides))
    message = str(refused.value)
    assert len(message.splitlines()) == 1
    return message
