"""The text of `llcg --help` and of `llcg COMMAND --help`: groups come from conf/, keys from the schema, values from the
settings that the overrides compose."""

import ast
import dataclasses
import importlib.resources
import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, cast, get_args

from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf

from llcg_dist.config.compose import compose_config
from llcg_dist.config.datasets import DATASETS, DatasetConfig
from llcg_dist.config.explain import explain
from llcg_dist.config.keys import DATASET, keys_of
from llcg_dist.config.schema import Config
from llcg_dist.errors import UserError
from llcg_dist.records.console import say

USAGE = """usage: llcg COMMAND [key=value ...]

  llcg partition   cut the graph into parts and write them to partition.root
                   --share 0,2 --to FOLDER: also copy what the host of machines 0 and 2 needs (server: the whole graph)
  llcg train       train: validates, cuts the graph if needed, starts 1+P processes
  llcg doctor      say what would keep a job from working, what it needs and sends, before anything starts
  llcg train -m    sweep: one job for each combination of key=a,b,c (docs/launch.md)
  llcg report      compare runs or sweeps in tables, figures and one HTML page: llcg report PATH...
  llcg watch       follow a run in the terminal: curves, bytes, phases, who is slow: llcg watch RUN [--once]
  llcg predict     write class and probability per node: llcg predict run_dir=RUN
  llcg key         make the key that the hosts of a job share: llcg key [FILE] (docs/security.md)

Settings are Hydra overrides: groups (algorithm=psgd_pa, model=gcn, partition=random) and keys (algorithm.K=16).
`llcg train [key=value ...] --help` lists them all with the values that they have then; as in Hydra, --cfg job prints
these as YAML, and --info defaults which files they come from."""

_CHOSEN_BY_GROUP = {"dataset.source", "partition.method", "model.name", "algorithm.name"}
"""Keys that a group choice sets, such as model=gcn: they are listed as groups, not as keys."""

_MOST_CHOICES_BY_NAME = 5
"""Choices in a subfolder of a group that are listed one by one; of more, only their number is shown."""


def print_help(command: str, arguments: Sequence[str] = ()) -> None:
    """Prints the help of one command; that of `train` and `partition` with the values which the arguments lead to."""
    if command == "predict":
        from llcg_dist.predict import USAGE as PREDICT_USAGE

        say(PREDICT_USAGE)
        return
    if command == "watch":
        from llcg_dist.cli.watch.command import USAGE as WATCH_USAGE

        say(WATCH_USAGE)
        return
    if command == "doctor":
        from llcg_dist.cli.doctor import USAGE as DOCTOR_USAGE

        say(DOCTOR_USAGE)
        return
    if command == "key":
        from llcg_dist.cli.key import USAGE as KEY_USAGE

        say(KEY_USAGE)
        return
    if command == "report":
        say(USAGE)
        return
    overrides = _fixed_overrides(arguments)
    sections = describe(compose_config(overrides))
    say(USAGE)
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
    preset = OmegaConf.to_container(OmegaConf.load(_conf() / "dataset" / f"{source}.yaml"))
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
    """`int`, `str | None`, the choices `a | b`; of settings that may be a list, both forms."""
    if kind is Any:
        return "one or a list"
    if kind in (None, type(None)):
        return "None"
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return " | ".join(kind)
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


def _conf() -> Path:
    return Path(str(importlib.resources.files("llcg_dist.conf")))


def _groups() -> list[str]:
    """A line `group=choice|choice` for every config group."""
    folders = sorted(path for path in _conf().iterdir() if path.is_dir() and list(path.glob("*.yaml")))
    return [f"{folder.name}={'|'.join(_choices(folder))}" for folder in folders]


def _choices(group: Path) -> list[str]:
    """The choices of a config group by name; of a subfolder with many of them, the number."""
    names = sorted(file.stem for file in group.glob("*.yaml"))
    for folder in sorted(path for path in group.iterdir() if path.is_dir()):
        nested = sorted(f"{folder.name}/{file.stem}" for file in folder.glob("*.yaml"))
        if len(nested) > _MOST_CHOICES_BY_NAME:
            nested = [f"{folder.name}/... ({len(nested)}, see conf/{group.name}/{folder.name})"]
        names += nested
    return names
