"""Composition of the settings with Hydra from conf/ and the command line, and one-line messages for its errors."""

import dataclasses
import difflib
import importlib.resources
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from hydra import compose, initialize_config_dir
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from omegaconf import OmegaConf

from llcg_dist.config.datasets import DATASETS
from llcg_dist.config.rules import validate
from llcg_dist.config.schema import Config
from llcg_dist.errors import UserError


def load_config(overrides: Sequence[str]) -> Config:
    """Composes conf/config.yaml with the overrides, checks types and rules, and returns plain dataclasses."""
    register_schema()
    GlobalHydra.instance().clear()
    conf = importlib.resources.files("llcg_dist.conf")
    try:
        with initialize_config_dir(str(conf), version_base="1.3"):
            composed = compose("config", overrides=list(overrides))
        config = cast(Config, OmegaConf.to_object(composed))
        _require_known(OmegaConf.to_container(composed), config)
    except UserError:
        raise
    except Exception as error:  # Hydra raises its own errors, OmegaConf's, ANTLR's, and bare assertions
        raise UserError(explain(error)) from None
    validate(config)
    return config


def to_yaml(config: Config) -> str:
    """The settings as YAML, the content of a run's config.yaml."""
    return OmegaConf.to_yaml(OmegaConf.structured(config))


def register_schema() -> None:
    """Registers the typed schema with Hydra's ConfigStore, so that unknown keys and wrong types fail when composed."""
    store = ConfigStore.instance()
    store.store(name="schema", node=Config)
    for name, schema in DATASETS.items():
        store.store(group="dataset/schema", name=name, node=schema, package="dataset")


_KEY = r".* full_key: (\S+)"
_MESSAGES: list[tuple[str, Callable[..., str]]] = [
    (
        f"Key '[^']+' (?:is )?not in '\\w+'{_KEY}",
        lambda key: f"unknown key {key}; `llcg train --help` lists the keys",
    ),
    (
        f"Invalid value '(.*)', expected one of \\[(.*?)\\]{_KEY}",
        lambda value, choices, key: f"{key}={value}: must be one of {choices}",
    ),
    (
        f"Value '(.*)' of type '\\w+' could not be converted to (\\w+){_KEY}",
        lambda value, kind, key: f"{key}={value}: must be of type {kind.lower()}",
    ),
    (
        f"Value '(.*)' of type '\\w+' is incompatible with type hint 'Union\\[(.*?)\\]'{_KEY}",
        lambda value, kinds, key: f"{key}={value}: must be of type {kinds.replace(', ', ' or ')}",
    ),
    (f"field '[^']+' is not Optional{_KEY}", lambda key: f"{key}=null: must have a value"),
    (f"Value (.*) \\(\\w+\\) is not a valid input{_KEY}", lambda value, key: f"{key}={value}: must be one word"),
]
"""OmegaConf's messages, on one line, and ours for them."""


def explain(error: Exception) -> str:
    """One line with the key and the cause; Hydra's own messages run over several lines and end in its search path."""
    text = str(error) if error.__cause__ is None else f"{error} {error.__cause__}"
    text = " ".join(text.split())
    for pattern, message in _MESSAGES:
        if found := re.search(pattern, text):
            return message(*found.groups())
    no_option = re.search(
        r"Could not (?:find|load) '([^']+)'(?: Available options in '([^']+)': (.*?)(?: Config search|$))?", text
    )
    if no_option:
        group = no_option[2] or no_option[1].partition("/")[0]  # of several experiments Hydra names the file only
        option = no_option[1].removeprefix(f"{group}/")
        return f"{group}={option}: must be one of {_choices(group, option, (no_option[3] or '').split())}"
    override = getattr(error, "override", None)
    if override:
        return f"{override}: cannot be read as a setting (key=value in Hydra's grammar)"
    return f"settings: {text.split(' Config search path')[0] or type(error).__name__}"


def _choices(group: str, option: str, listed: Sequence[str]) -> str:
    """The files of a group, the nearest to the option first, three of each sub-folder; Hydra lists no sub-folders."""
    folder = Path(str(importlib.resources.files("llcg_dist.conf"))) / group
    names = sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.yaml")) or listed
    nearest = difflib.get_close_matches(option, names, n=3, cutoff=0.4)
    shown: dict[str, list[str]] = {}
    for name in [*nearest, *(name for name in names if name not in nearest)]:
        shown.setdefault(name.rpartition("/")[0], []).append(name)
    first = [name for inside, all_of in shown.items() for name in (all_of[:3] if inside else all_of)]
    more = sorted(f"conf/{group}/{inside}" for inside, all_of in shown.items() if inside and len(all_of) > 3)
    return ", ".join(first) + (f"; more in {', '.join(more)}" if more else "")


def _require_known(composed: Any, config: Any, prefix: str = "") -> None:
    """Raises UserError for keys added with Hydra's +key=value, which no schema has and nothing would read."""
    known = {f.name for f in dataclasses.fields(config)}
    for key, value in composed.items():
        if key not in known:
            raise UserError(f"unknown key {prefix}{key}; `llcg train --help` lists the keys")
        if dataclasses.is_dataclass(getattr(config, key)):
            _require_known(value, getattr(config, key), f"{prefix}{key}.")


def quoted_override(key: str, value: str) -> str:
    """key='value' with the value quoted and escaped for Hydra's override grammar."""
    escaped = re.sub(r"(\\*)('|\$\{)", r"\1\1\\\2", value)
    escaped = re.sub(r"(\\+)$", r"\1\1", escaped)
    return f"{key}='{escaped}'"
