"""The settings as `llcg train --help` lists them: groups come from the presets, keys from the schema, values from what
the overrides compose."""

import ast
import dataclasses
import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, cast, get_args, get_origin

from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf

from llcg_dist.config.compose import compose_config
from llcg_dist.config.dataset import DatasetConfig
from llcg_dist.config.datasets import DATASETS
from llcg_dist.config.explain import explain, presets_of
from llcg_dist.config.keys import DATASET, keys_of
from llcg_dist.config.own_files import preset_folders
from llcg_dist.config.schema import Config
from llcg_dist.errors import UserError
from llcg_dist.records.console import say

_CHOSEN_BY_GROUP = {"dataset.source", "partition.method", "model.name", "algorithm.name"}
"""Keys that a group choice sets, such as model=gcn: they are listed as groups, not as keys."""

_MOST_CHOICES_BY_NAME = 5
"""Choices in a subfolder of a group that are listed one by one; of more, only their number is shown."""


def print_settings(arguments: Sequence[str] = ()) -> None:
    """Prints all groups with their choices, and all keys with the values which the arguments lead to."""
    overrides = _fixed_overrides(arguments)
    sections = describe(compose_config(overrides))
    say("\nGroups:")
    for line in _groups():
        say(f"  {line}")
    say(f"\nKeys, and their values with {' '.join(overrides) or 'the defaults'}:")
    for section in sections:
        if section.title:
            say(f"\n  {section.title}:")
        for key in section.keys:
            say(f"  {key.name} = {key.value} ({key.type_name})" + (f"\n      {key.text}" if key.text else ""))


@dataclass(frozen=True)
class Key:
    """One setting: its dotted name, type, present value as it is written on the command line, and help text."""

    name: str
    type_name: str
    value: str
    text: str


@dataclass(frozen=True)
class KeySection:
    """Keys under a title; those of a dataset apply only where it is chosen."""

    title: str
    keys: list[Key]


def describe(config: Config) -> list[KeySection]:
    """Every key with its value in `config`, and the keys of every other source of graphs with that source's values."""
    common = {name for name, _ in keys_of(DatasetConfig, DATASET)}
    chosen = config.dataset.source
    own_sections = [key for key in _keys(config, "") if not key.name.startswith(DATASET)]
    of_any = [key for key in _keys(config.dataset, DATASET) if key.name in common]
    of_chosen = [key for key in _keys(config.dataset, DATASET) if key.name not in common]
    sections = [
        KeySection("", own_sections),
        KeySection("with any dataset", of_any),
        KeySection(f"with dataset={chosen}, which is chosen", of_chosen),
    ]
    for schema in dict.fromkeys(DATASETS.values()):
        sources = [source for source, its_schema in DATASETS.items() if its_schema is schema and source != chosen]
        of_sources = [_keys(_preset(source), DATASET) for source in sources]
        keys = [_merged(same_key) for same_key in zip(*of_sources, strict=True) if same_key[0].name not in common]
        if keys:
            sections.append(KeySection(f"with dataset={'|'.join(sources)}", keys))
    return sections


def _keys(section: Any, prefix: str) -> list[Key]:
    """The keys of a section and of those in it, but for those that a group's choice sets."""
    docstrings = _field_docstrings(type(section))
    keys: list[Key] = []
    for field in dataclasses.fields(section):
        name, value = f"{prefix}{field.name}", getattr(section, field.name)
        if dataclasses.is_dataclass(value):
            keys += _keys(value, f"{name}.")
        elif name not in _CHOSEN_BY_GROUP:
            keys.append(Key(name, _type_name(field.type), _as_written(value), docstrings.get(field.name, "")))
    return keys


def _preset(source: str) -> DatasetConfig:
    """The settings of a choice of `dataset`, from its file in conf/."""
    preset = OmegaConf.to_container(OmegaConf.load(preset_folders()[0] / "dataset" / f"{source}.yaml"))
    values = {str(key): value for key, value in cast(dict[Any, Any], preset).items() if key != "defaults"}
    return DATASETS[source](**values)


def _merged(same_key: Sequence[Key]) -> Key:
    """One key for several sources, with the values of all of them."""
    values = dict.fromkeys(key.value for key in same_key)
    return dataclasses.replace(same_key[0], value=" | ".join(values))


def _as_written(value: Any) -> str:
    """A value as an override gives it: null, true, [10,5]."""
    if isinstance(value, list):
        return f"[{','.join(map(_as_written, value))}]"
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _fixed_overrides(arguments: Sequence[str]) -> list[str]:
    """The overrides among a command's arguments, without those that a sweep (-m) varies."""
    overrides = [argument for argument in arguments if "=" in argument and not argument.startswith("-")]
    if not {"-m", "--multirun"} & set(arguments):
        return overrides
    try:
        parsed = OverridesParser.create().parse_overrides(overrides)
    except Exception as error:  # ANTLR's errors and Hydra's have no common base
        raise UserError(explain(error)) from None
    return [str(override.input_line) for override in parsed if not override.is_sweep_override()]


def _type_name(kind: Any) -> str:
    """`int`, `str | None`, the choices `a | b`; of settings that may be a list, both forms; `a list of int`."""
    if kind is Any:
        return "one or a list"
    if kind in (None, type(None)):
        return "None"
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return " | ".join(kind)
    if get_origin(kind) is list:
        return f"a list of {' | '.join(map(_type_name, get_args(kind)))}"
    if get_origin(kind) is dict:
        return "keys and values"
    return kind.__name__ if isinstance(kind, type) else " | ".join(map(_type_name, get_args(kind)))


def _field_docstrings(schema: type) -> dict[str, str]:
    """The string literal under each field of a dataclass and of its base classes, by the field's name."""
    docstrings: dict[str, str] = {}
    for base in reversed([c for c in schema.__mro__ if dataclasses.is_dataclass(c)]):
        body = cast(ast.ClassDef, ast.parse(inspect.getsource(base)).body[0]).body
        for statement, following in zip(body, body[1:], strict=False):
            if (
                isinstance(statement, ast.AnnAssign)
                and isinstance(following, ast.Expr)
                and isinstance(following.value, ast.Constant)
            ):
                docstrings[cast(ast.Name, statement.target).id] = " ".join(str(following.value.value).split())
    return docstrings


def groups() -> dict[str, list[str]]:
    """The presets of every config group, the user's own among them."""
    folders = sorted(path.name for path in preset_folders()[0].iterdir() if path.is_dir())
    return {group: names for group in folders if (names := presets_of(group))}


def _groups() -> list[str]:
    """A line `group=choice|choice` for every config group; of a sub-folder with many of them, the number."""
    lines = []
    for group, names in groups().items():
        shown = [name for name in names if "/" not in name]
        for folder in dict.fromkeys(name.rpartition("/")[0] for name in names if "/" in name):
            nested = [name for name in names if name.rpartition("/")[0] == folder]
            few = len(nested) <= _MOST_CHOICES_BY_NAME
            shown += nested if few else [f"{folder}/... ({len(nested)}: llcg help {group})"]
        lines.append(f"{group}={'|'.join(shown)}")
    return lines
