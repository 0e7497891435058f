"""Settings as a run has recorded them (config.yaml). Whoever wrote the file, it is read as plain values and nothing in
it is looked up or expanded; what is trained or predicted from it is checked as the settings of a new job are."""

import dataclasses
import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

import yaml
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from llcg_dist.config.datasets import DATASETS
from llcg_dist.config.explain import explain
from llcg_dist.config.rules import validate
from llcg_dist.config.run_format import UNNUMBERED, take_format
from llcg_dist.config.schema import Config
from llcg_dist.errors import UserError, one_line

_MOST_BYTES = 1_000_000
"""A config.yaml has a few thousand bytes."""
_MOST_NESTED = 20
_SHOWN = 200
"""Characters of a reason that are shown: it may repeat the file."""


def read_settings(path: Path) -> dict[str, Any]:
    """The settings in a config.yaml; raises UserError where it is not a mapping of plain values, or its format unknown.

    Aliases, of which a small file can make a huge one, and interpolations such as ${oc.env:HOME} are refused.
    """
    return _read(path)[0]


def read_settings_to_resume(path: Path) -> dict[str, Any]:
    """The settings in a config.yaml to resume from, with defaults for keys that its version did not have; raises
    UserError where it is another program's."""
    settings, format_ = _read(path)
    try:
        schema = Config(dataset=DATASETS[settings["dataset"]["source"]]())
    except (KeyError, TypeError):
        if format_ == UNNUMBERED:
            raise UserError(f"{path}: is not the config.yaml of a run of llcg_dist") from None
        return settings  # compared as they stand, they differ
    return settings if format_ == UNNUMBERED else _with_defaults(settings, dataclasses.asdict(schema))


def read_config(path: Path, locations: Mapping[str, str] | None = None) -> Config:
    """The settings in a config.yaml, with known keys, types and rules checked. `locations` replace its paths, by dotted
    key."""
    settings = read_settings(path)
    try:
        schema = OmegaConf.structured(Config(dataset=DATASETS[settings["dataset"]["source"]]()))
    except (KeyError, TypeError) as error:
        raise UserError(f"{path}: not the settings of a run (dataset.source: {one_line(error)[:_SHOWN]})") from None
    try:
        config = cast(Config, OmegaConf.to_object(OmegaConf.merge(schema, settings)))
    except (OmegaConfBaseException, KeyError, TypeError, ValueError) as error:
        raise UserError(f"{path}: not the settings of a run ({explain(error)[:_SHOWN]})") from None
    for key, value in (locations or {}).items():
        _replace(config, key, value)
    try:
        validate(config)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    return config


def _read(path: Path) -> tuple[dict[str, Any], int]:
    """(settings, format)"""
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        settings = _plain(content)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (OSError, ValueError, RecursionError, yaml.YAMLError, OmegaConfBaseException) as error:
        raise UserError(f"{path}: not the settings of a run ({one_line(error)[:_SHOWN]})") from None
    return settings, take_format(settings, str(path))


def _with_defaults(settings: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    inner = {
        key: _with_defaults(value, defaults[key])
        for key, value in settings.items()
        if isinstance(value, dict) and isinstance(defaults.get(key), dict)
    }
    return defaults | settings | inner


def _plain(content: bytes) -> dict[str, Any]:
    """Raises ValueError, or what YAML raises, for anything but a mapping of plain values."""
    if len(content) > _MOST_BYTES:
        raise ValueError(f"more than {_MOST_BYTES:,} bytes")
    text = content.decode()
    _require_plain_mapping(yaml.parse(text, yaml.SafeLoader))
    settings = cast(dict[Any, Any], OmegaConf.to_container(OmegaConf.load(io.StringIO(text)), resolve=False))
    _refuse_interpolations(settings)
    return {str(key): value for key, value in settings.items()}


def _require_plain_mapping(events: Iterable[Any]) -> None:
    """Raises ValueError for aliases, for deep nesting, which takes YAML for ever, and where there is no mapping."""
    depth = 0
    for number, event in enumerate(events):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if isinstance(event, yaml.AliasEvent):
            raise ValueError("it has aliases")
        if depth > _MOST_NESTED:
            raise ValueError(f"it is nested more than {_MOST_NESTED} deep")
        if number == 2 and not isinstance(event, yaml.MappingStartEvent):  # after those of stream and document
            raise ValueError("it holds no settings")
    if number < 4:
        raise ValueError("it holds no settings")


def _refuse_interpolations(value: Any, place: str = "") -> None:
    if isinstance(value, dict):
        for key, inner in value.items():
            _refuse_interpolations(str(key), "a key")
            _refuse_interpolations(inner, f"{place}.{key}".lstrip("."))
    elif isinstance(value, list):
        for inner in value:
            _refuse_interpolations(inner, place)
    elif isinstance(value, str) and "${" in value:
        raise ValueError(f"{place}={value}: recorded settings have values, and no interpolation")


def _replace(config: Config, key: str, value: str) -> None:
    """Sets a path of the settings; a source of graphs that has no such key is a UserError."""
    section_name, _, name = key.partition(".")
    section = getattr(config, section_name)
    if not hasattr(section, name):
        raise UserError(f"{key}={value}: the run's dataset={config.dataset.source} has no such setting; leave it out")
    setattr(section, name, value)
