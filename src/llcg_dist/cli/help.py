"""What `llcg train --help` says of every key, taken from the schema itself."""

import ast
import dataclasses
import inspect
from collections.abc import Iterator
from typing import Any, cast

from llcg_dist.config.datasets import DATASETS
from llcg_dist.config.schema import Config

_CHOSEN_BY_GROUP = {"dataset.source", "partition.method", "model.name", "algorithm.name"}


def describe() -> Iterator[tuple[str, str, Any, str]]:
    """Every key as (dotted key, type, default, help), the help taken from the text under the field."""
    yield from _describe(Config, "")


def _describe(schema: type, prefix: str) -> Iterator[tuple[str, str, Any, str]]:
    texts = _field_texts(schema)
    for f in dataclasses.fields(schema):
        if f.name == "dataset":
            of_any_source = [entry for source in DATASETS.values() for entry in _describe(source, "dataset.")]
            yield from sorted({entry[:2]: entry for entry in reversed(of_any_source)}.values(), key=of_any_source.index)
        elif isinstance(f.type, type) and dataclasses.is_dataclass(f.type):
            yield from _describe(f.type, f"{prefix}{f.name}.")
        elif f"{prefix}{f.name}" not in _CHOSEN_BY_GROUP:
            type_name = f.type.__name__ if isinstance(f.type, type) else str(f.type)
            yield f"{prefix}{f.name}", type_name, f.default, texts.get(f.name, "")


def _field_texts(schema: type) -> dict[str, str]:
    texts: dict[str, str] = {}
    for base in reversed([c for c in schema.__mro__ if dataclasses.is_dataclass(c)]):
        body = cast(ast.ClassDef, ast.parse(inspect.getsource(base)).body[0]).body
        for here, after in zip(body, body[1:], strict=False):
            if (
                isinstance(here, ast.AnnAssign)
                and isinstance(after, ast.Expr)
                and isinstance(after.value, ast.Constant)
            ):
                texts[cast(ast.Name, here.target).id] = str(after.value.value)
    return texts
