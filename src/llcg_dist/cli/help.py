"""The text of `llcg --help` and of `llcg COMMAND --help`; groups come from conf/, keys from the schema."""

import ast
import dataclasses
import importlib.resources
import inspect
from collections.abc import Iterator
from dataclasses import MISSING
from enum import StrEnum
from pathlib import Path
from typing import Any, cast, get_args

from llcg_dist.config.datasets import DATASETS
from llcg_dist.config.schema import Config
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

Settings are Hydra overrides: groups (algorithm=psgd_pa, model=gcn, partition=random) and keys (algorithm.K=16).
`llcg train --help` lists them all."""

_CHOSEN_BY_GROUP = {"dataset.source", "partition.method", "model.name", "algorithm.name"}
"""Keys that a group choice sets, such as model=gcn: they are listed as groups, not as keys."""

_MOST_CHOICES_BY_NAME = 5
"""Choices in a subfolder of a group that are listed one by one; of more, only their number is shown."""


def print_help(command: str) -> None:
    """Prints the help of one command."""
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
    say(USAGE)
    if command == "report":
        return
    say("\nGroups:")
    for line in _groups():
        say(f"  {line}")
    say("\nKeys:")
    for key, type_name, default, text in describe():
        shown = "" if default is MISSING or default == "???" else f" = {default}"
        say(f"  {key}{shown} ({type_name})" + (f"\n      {text}" if text else ""))


def describe() -> Iterator[tuple[str, str, Any, str]]:
    """Every key as (dotted key, type, default, help); the help is the docstring under the field in the schema."""
    yield from _describe(Config, "")


def _describe(schema: type, prefix: str) -> Iterator[tuple[str, str, Any, str]]:
    docstrings = _field_docstrings(schema)
    for f in dataclasses.fields(schema):
        if f.name == "dataset":
            of_any_source = [entry for source in DATASETS.values() for entry in _describe(source, "dataset.")]
            yield from sorted({entry[:2]: entry for entry in reversed(of_any_source)}.values(), key=of_any_source.index)
        elif isinstance(f.type, type) and dataclasses.is_dataclass(f.type):
            yield from _describe(f.type, f"{prefix}{f.name}.")
        elif f"{prefix}{f.name}" not in _CHOSEN_BY_GROUP:
            yield f"{prefix}{f.name}", _type_name(f.type), f.default, docstrings.get(f.name, "")


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
                docstrings[cast(ast.Name, statement.target).id] = str(following.value.value)
    return docstrings


def _groups() -> list[str]:
    """A line `group=choice|choice` for every config group."""
    conf = Path(str(importlib.resources.files("llcg_dist.conf")))
    folders = sorted(path for path in conf.iterdir() if path.is_dir() and list(path.glob("*.yaml")))
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
