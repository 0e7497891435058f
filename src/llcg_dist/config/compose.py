"""Settings are composed with Hydra from conf/ and the command line, checked, and returned as plain dataclasses."""

import dataclasses
import importlib.resources
import re
from collections.abc import Sequence
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
    return OmegaConf.to_yaml(OmegaConf.structured(config))


def register_schema() -> None:
    store = ConfigStore.instance()
    store.store(name="schema", node=Config)
    for name, schema in DATASETS.items():
        store.store(group="dataset/schema", name=name, node=schema, package="dataset")


def explain(error: Exception) -> str:
    """Hydra's messages run over several lines and end in its search path; a user needs the key and the cause."""
    text = str(error) if error.__cause__ is None else f"{error} {error.__cause__}"
    text = " ".join(text.split())
    unknown = re.search(r"Key '[^']+' (?:is )?not in '\w+'.* full_key: (\S+)", text)
    if unknown:
        return f"unknown key {unknown[1]}; `llcg train --help` lists the keys"
    wrong_type = re.search(r"Value '(.*)' of type '\w+' could not be converted to (\w+) full_key: (\S+)", text)
    if wrong_type:
        return f"{wrong_type[3]}={wrong_type[1]}: must be of type {wrong_type[2].lower()}"
    no_option = re.search(
        r"Could not find '([^']+)/([^']+)' Available options in '[^']+': (.*?)(?: Config search|$)", text
    )
    if no_option:
        group, option, options = no_option.groups()
        return f"{group}={option}: must be one of {', '.join(options.split())}"
    override = getattr(error, "override", None)
    if override:
        return f"{override}: cannot be read as a setting (key=value in Hydra's grammar)"
    return f"settings: {text.split(' Config search path')[0] or type(error).__name__}"


def _require_known(composed: Any, config: Any, prefix: str = "") -> None:
    """Hydra's +key=value adds what no schema knows, to be ignored ever after."""
    known = {f.name for f in dataclasses.fields(config)}
    for key, value in composed.items():
        if key not in known:
            raise UserError(f"unknown key {prefix}{key}; `llcg train --help` lists the keys")
        if dataclasses.is_dataclass(getattr(config, key)):
            _require_known(value, getattr(config, key), f"{prefix}{key}.")


def quoted_override(key: str, value: str) -> str:
    """key=value for Hydra's grammar, whatever characters the value holds."""
    escaped = re.sub(r"(\\*)('|\$\{)", r"\1\1\\\2", value)
    escaped = re.sub(r"(\\+)$", r"\1\1", escaped)
    return f"{key}='{escaped}'"
