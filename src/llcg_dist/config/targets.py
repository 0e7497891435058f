"""Users' own classes and functions by dotted path (my_package.nets.MyNet), as Hydra's `_target_` names them."""

import logging
import sys
from typing import Any

from hydra.utils import get_object

from llcg_dist.errors import UserError, one_line, reason_in

_IN_MEMORY = "in_memory."
_objects: dict[str, Any] = {}


def resolve(key: str, target: str) -> Any:
    """The class or function that the setting `key` names; UserError where it cannot be imported."""
    if target in _objects:
        return _objects[target]
    if is_in_memory(target):
        raise UserError(f"{key}={target}: existed only in the process that trained; name an importable class instead")
    try:
        return _imported(target)
    except Exception as error:  # whatever the user's module raises when it is imported
        cause = error.__cause__ if isinstance(error.__cause__, Exception) else error
        advice = "write package.module.Name, with its folder the current one or on PYTHONPATH"
        reason = _missing_name(target) or one_line(cause)
        raise UserError(f"{key}={target}: cannot be imported ({reason}); {advice}") from None


def _imported(target: str) -> Any:
    """What the dotted path names. Hydra also logs, over several lines, whatever it raises."""
    log = logging.getLogger(get_object.__module__)
    before, log.disabled = log.disabled, True
    try:
        return get_object(target)
    finally:
        log.disabled = before


def _missing_name(target: str) -> str | None:
    """Says so where the module was imported, from whichever file, and has no such name."""
    path, _, name = target.rpartition(".")
    module = sys.modules.get(path)
    try:
        if module is None or hasattr(module, name):
            return None
    except Exception:  # a module that imports its names when they are asked for
        return None
    return f"{path} has no {name}: {getattr(module, '__file__', None) or 'built in'}"


def call(key: str, target: str, **arguments: Any) -> Any:
    """What the class or function returns for these arguments; UserError where it is not callable or refuses them."""
    function = resolve(key, target)
    if not callable(function):
        raise UserError(f"{key}={target}: must be a class or a function, not a {type(function).__name__}")
    try:
        return function(**arguments)
    except UserError:
        raise
    except Exception as error:
        given, reason = ", ".join(arguments), reason_in(function, error)
        raise UserError(f"{key}={target}: failed when called with {given} ({reason})") from error


def importable_path(thing: Any) -> str | None:
    """The dotted path by which another process can import a class or function; None where there is none."""
    module, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)
    if not module or not name or module == "__main__":
        return None
    path = f"{module}.{name}"
    try:
        return path if _imported(path) is thing else None
    except Exception:
        return None


def keep_in_memory(thing: Any) -> str:
    """A name under which this process, and no other, resolves a class or function."""
    name = f"{_IN_MEMORY}{getattr(thing, '__name__', type(thing).__name__)}"
    _objects[name] = thing
    return name


def is_in_memory(target: str) -> bool:
    """Whether keep_in_memory gave this name."""
    return target.startswith(_IN_MEMORY)
