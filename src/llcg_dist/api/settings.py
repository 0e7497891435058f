"""Python values as overrides of settings: quoted for Hydra, classes and functions by their dotted paths."""

import shlex
from collections.abc import Callable, Mapping
from typing import Any

from llcg_dist.config.compose import quoted
from llcg_dist.config.schema import Config
from llcg_dist.config.targets import importable_path, is_in_memory, keep_in_memory
from llcg_dist.errors import UserError, one_line

Target = str | Callable[..., Any]
"""A preset's name, a dotted path, or the class or function itself."""


def overrides_of(settings: Mapping[str, Any], prefix: str = "") -> list[str]:
    """key=value of every setting; a dictionary stands for the keys below its own."""
    overrides: list[str] = []
    for key, value in settings.items():
        name = f"{prefix}{key}"
        overrides += (
            overrides_of(value, f"{name}.") if isinstance(value, Mapping) else [f"{name}={_value(name, value)}"]
        )
    return overrides


def given_settings(overrides: Mapping[str, Any] | None) -> dict[str, Any]:
    """The argument `overrides` of fit; UserError where it is not a mapping."""
    if overrides is None:
        return {}
    if not isinstance(overrides, Mapping):
        rule = 'must be a mapping, such as {"cluster.backend": "loopback"}'
        raise UserError(f"overrides: {rule}, not a {type(overrides).__name__}")
    return dict(overrides)


def _value(key: str, value: Any) -> str:
    """A value as Hydra reads it."""
    if callable(getattr(value, "item", None)):
        value = value.item()  # a number of NumPy's or torch's
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{','.join(_value(key, item) for item in value)}]"
    if isinstance(value, str) or hasattr(value, "__fspath__"):
        return quoted(str(value))
    raise UserError(
        f"{key}: a {type(value).__name__} cannot be a setting; use numbers, text, lists, None, or true and false"
    )


def data_overrides(data: Any) -> list[str] | None:
    """The settings that `data` spells out, in one text or a list of them; None where it is a graph."""
    if isinstance(data, str):
        try:
            settings = shlex.split(data)
        except ValueError as error:
            raise UserError(f"{data}: cannot be read as settings ({one_line(error)})") from None
    elif isinstance(data, list | tuple) and data and all(isinstance(item, str) for item in data):
        settings = list(data)
    else:
        return None
    for setting in settings:
        if "=" not in setting and not setting.startswith("~"):
            rule = "is no setting (key=value); give a graph, or settings such as 'dataset=pyg dataset.path=FILE'"
            raise UserError(f"{setting}: {rule}")
    return settings


def target_overrides(group: str, target: Target | None) -> list[str]:
    """The choice of a group: a preset by name, or `own` with the path of a class or function."""
    if target is None:
        return []
    if isinstance(target, str) and "." not in target:
        return [f"{group}={quoted(target)}"]
    if not isinstance(target, str) and not isinstance(target, type) and hasattr(target, "parameters"):
        rule = f"give the class {type(target).__name__}, not one of its objects: every machine builds its own"
        raise UserError(f"{group}: {rule} (options: overrides={{'{group}.options': {{...}}}})")
    path = target if isinstance(target, str) else importable_path(target) or keep_in_memory(target)
    return [f"{group}=own", f"{group}.target={quoted(path)}"]


def require_importable(config: Config) -> None:
    """Raises UserError for a class or function that no other process can import."""
    for group, target in (("model", config.model.target), ("algorithm", config.algorithm.target)):
        if target and is_in_memory(target):
            what = f"{group}: {target.rpartition('.')[2]} exists in this process only, and machines are processes"
            advice = "put it into a module of its own (a .py file) and import it from there"
            raise UserError(f"{what}; {advice}, or use overrides={{'cluster.backend': 'loopback'}}")
