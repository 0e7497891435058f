"""Composition of the settings with Hydra from conf/ and the command line."""

import contextlib
import dataclasses
import functools
import re
from collections.abc import Iterator, Sequence
from typing import Any, cast

from hydra import compose, initialize_config_dir
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from omegaconf import OmegaConf

from llcg_dist.config.datasets import DATASETS
from llcg_dist.config.explain import explain
from llcg_dist.config.keys import sources_with, unknown_key
from llcg_dist.config.own_files import preset_folders, register_own_presets
from llcg_dist.config.rules import validate
from llcg_dist.config.run_format import FORMAT_KEY, RUN_FORMAT
from llcg_dist.config.schema import Config
from llcg_dist.errors import UserError

_GROUPS = ("dataset", "partition", "model", "algorithm", "experiment")
_OPTION = re.compile(r"(model|algorithm|dataset)\.options\.|train\.optimizer_options\.")


def load_config(overrides: Sequence[str]) -> Config:
    """Composes conf/config.yaml with the overrides, checks types and rules, and returns plain dataclasses."""
    config = compose_config(overrides)
    validate(config)
    return config


def compose_config(overrides: Sequence[str]) -> Config:
    """The composed settings, with known keys and the right types; rules between values are not checked."""
    require_one_choice(overrides)
    try:
        with opened_conf():
            composed = compose("config", overrides=[may_add(override) for override in overrides])
            config = cast(Config, OmegaConf.to_object(composed))
            _require_known(OmegaConf.to_container(composed), config)
    except UserError as error:
        raise UserError(_of_experiment(str(error), overrides)) from None
    return config


@contextlib.contextmanager
def opened_conf() -> Iterator[None]:
    """Hydra over conf/, the user's own presets and the schema; whatever it raises becomes a UserError of one line."""
    register_schema()
    register_own_presets()
    before = GlobalHydra.instance().hydra  # of a program that is a Hydra application itself
    GlobalHydra.instance().clear()
    try:
        with initialize_config_dir(str(preset_folders()[0]), "llcg", version_base="1.3"):
            yield
    except UserError:
        raise
    except Exception as error:  # Hydra raises its own errors, OmegaConf's, ANTLR's, and bare assertions
        raise UserError(explain(error)) from None
    finally:
        GlobalHydra.instance().hydra = before


def to_yaml(config: Config) -> str:
    """The settings as YAML."""
    return OmegaConf.to_yaml(OmegaConf.structured(config))


def recorded_yaml(config: Config) -> str:
    """The content of a run's config.yaml: the number of its format, and the settings."""
    return f"{FORMAT_KEY}: {RUN_FORMAT}\n{to_yaml(config)}"


@functools.cache
def register_schema() -> None:
    """Registers the typed schema with Hydra's ConfigStore, so that unknown keys and wrong types fail when composed.

    Once in a process: it takes a quarter of the time of a composition.
    """
    store = ConfigStore.instance()
    store.store(name="schema", node=Config)
    for name, schema in DATASETS.items():
        store.store(group="dataset/schema", name=name, node=schema, package="dataset")


def _require_known(composed: Any, config: Any, prefix: str = "") -> None:
    """Raises UserError for keys added with Hydra's +key=value, which no schema has and nothing would read."""
    known = {f.name for f in dataclasses.fields(config)}
    for key, value in composed.items():
        if key not in known:
            raise UserError(unknown_key(f"{prefix}{key}"))
        if dataclasses.is_dataclass(getattr(config, key)):
            _require_known(value, getattr(config, key), f"{prefix}{key}.")


def require_one_choice(overrides: Sequence[str]) -> None:
    """Raises UserError where a group is chosen twice: Hydra would take the last without a word."""
    chosen: dict[str, str] = {}
    for group, _, choice in (override.partition("=") for override in overrides):
        if group in _GROUPS and chosen.setdefault(group, choice) != choice:
            both = f"{group}={chosen[group]} and {group}={choice}"
            raise UserError(f"{both}: only one of them can be chosen; leave one out")


def _of_experiment(message: str, overrides: Sequence[str]) -> str:
    """The message; about the experiment where that brings a setting which the chosen data set does not have."""
    key = message.partition(":")[0]
    brought = not any(override.lstrip("+").startswith(f"{key}=") for override in overrides)
    experiment = next((override for override in overrides if override.startswith("experiment=")), None)
    dataset = next((override for override in overrides if override.startswith("dataset=")), None)
    if experiment and dataset and brought and sources_with(key):
        return f"{experiment}: sets {key}, which {dataset} does not have; leave out one of the two"
    return message


def may_add(override: str) -> str:
    """Options are keyword arguments of a user's class: any key may be given there without Hydra's +."""
    return f"++{override}" if _OPTION.match(override) else override


def quoted_override(key: str, value: str) -> str:
    """key='value' with the value quoted and escaped for Hydra's override grammar."""
    return f"{key}={quoted(value)}"


def quoted(value: str) -> str:
    """The text in quotes, escaped for Hydra's override grammar."""
    escaped = re.sub(r"(\\*)('|\$\{)", r"\1\1\\\2", value)
    escaped = re.sub(r"(\\+)$", r"\1\1", escaped)
    return f"'{escaped}'"
