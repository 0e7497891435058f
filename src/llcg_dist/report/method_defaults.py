"""What settings a method has where nobody sets them: labels of runs leave these out."""

import functools
import importlib.resources
from collections.abc import Iterator
from dataclasses import fields
from importlib.resources.abc import Traversable
from typing import Any

import yaml

from llcg_dist.config.algorithm import AlgorithmConfig
from llcg_dist.config.schema import Config

_OVERRIDE = "override /"


@functools.cache
def default_settings(method: str) -> dict[str, Any]:
    """{dotted key: value} of all settings of `algorithm`, and of those elsewhere that the preset of any method sets."""
    of_schema = {f"algorithm.{field.name}": field.default for field in fields(AlgorithmConfig)}
    elsewhere = {key for name in _methods() for key in _preset(name) if not key.startswith("algorithm.")}
    return of_schema | {key: _of_schema(key) for key in elsewhere} | _preset(method)


def _of_schema(key: str) -> Any:
    section, _, name = key.partition(".")
    return getattr(getattr(Config(), section), name)


def _methods() -> list[str]:
    return [file.name.removesuffix(".yaml") for file in _presets("algorithm").iterdir() if file.name.endswith(".yaml")]


@functools.cache
def _preset(method: str) -> dict[str, Any]:
    """{dotted key: value} of conf/algorithm/<method>.yaml, which holds keys of `algorithm`, or, with `@package
    _global_`, of several sections and choices of other groups."""
    content = _read("algorithm", method)
    if "algorithm" not in content:
        return dict(_dotted({"algorithm": content}))
    choices = [choice for entry in content.pop("defaults", []) for choice in entry.items()]
    chosen = {group.removeprefix(_OVERRIDE): name for group, name in choices}
    return dict(_dotted({group: _read(group, name) for group, name in chosen.items()} | content))


def _dotted(sections: dict[str, dict[str, Any]]) -> Iterator[tuple[str, Any]]:
    for section, keys in sections.items():
        yield from ((f"{section}.{key}", value) for key, value in keys.items())


def _read(group: str, name: str) -> dict[str, Any]:
    """Empty for a method of the user's own."""
    file = _presets(group) / f"{name}.yaml"
    return (yaml.safe_load(file.read_text()) or {}) if "/" not in name and file.is_file() else {}


def _presets(group: str) -> Traversable:
    return importlib.resources.files("llcg_dist.conf") / group
