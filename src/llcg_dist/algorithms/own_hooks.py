"""The hooks of a user's own method, checked where they are called: later a mistake would fail far from there."""

import inspect
import io
import re
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from llcg_dist.algorithms.base import Algorithm
from llcg_dist.errors import TrainingError, UserError, one_line, reason_in
from llcg_dist.training.flat_vector import is_finite

_HOOKS = ("local_gradient", "after_local_steps", "aggregate", "correct", "send_model", "local_phase")
_REFUSED_CLASS = re.compile(r"GLOBAL (\S+)")
"""What torch.load says of a class that it would have to import."""


def check_hooks(algorithm: Algorithm, target: str) -> Algorithm:
    """The method, whose hooks from now on return vectors like the one that they were given first, in memory of their
    own, or raise a UserError."""
    for name in _HOOKS:
        _check_signature(algorithm, name, target)
    # Models are copied: the method may go on with its vector, or with a machine's, where the next one arrives.
    if algorithm.overrides("local_gradient"):
        _wrap(algorithm, "local_gradient", target, lambda gradient: gradient)
    if algorithm.overrides("aggregate"):
        _wrap(algorithm, "aggregate", target, lambda model: _finite(model, target).clone())
    if algorithm.overrides("correct"):
        _wrap(algorithm, "correct", target, Tensor.clone)
    if algorithm.overrides("state_dict") != algorithm.overrides("load_state_dict"):
        raise UserError(f"algorithm.target={target}: must have both state_dict and load_state_dict, or neither")
    if algorithm.overrides("state_dict"):
        _check_state(algorithm, target)
    return algorithm


def _check_signature(algorithm: Algorithm, name: str, target: str) -> None:
    given = list(inspect.signature(getattr(Algorithm, name)).parameters)[1:]
    try:
        inspect.signature(getattr(algorithm, name)).bind(*given)
    except TypeError:
        raise UserError(f"algorithm.target={target}: {name} must take ({', '.join(['self', *given])})") from None


def _wrap(algorithm: Algorithm, name: str, target: str, finish: Callable[[Tensor], Tensor]) -> None:
    hook: Callable[..., Tensor] = getattr(algorithm, name)

    def checked(like: Tensor, *others: Any) -> Tensor:
        found = hook(like, *others)
        if not isinstance(found, Tensor) or (found.shape, found.dtype) != (like.shape, like.dtype):
            returned = f"{found.dtype} {list(found.shape)}" if isinstance(found, Tensor) else type(found).__name__
            rule = f"{name} returned {returned}, not a vector of {like.dtype} {list(like.shape)} like its first input"
            raise UserError(f"algorithm.target={target}: {rule}")
        return finish(found)

    setattr(algorithm, name, checked)


def _finite(model: Tensor, target: str) -> Tensor:
    if not is_finite(model):
        raise TrainingError(f"algorithm.target={target}: aggregate returned a model that is not finite")
    return model


def _check_state(algorithm: Algorithm, target: str) -> None:
    state_dict, load_state_dict = algorithm.state_dict, algorithm.load_state_dict

    def saved() -> dict[str, Any]:
        state = state_dict()
        reason = _unreadable(state) if isinstance(state, dict) else f"a {type(state).__name__}"
        if reason:
            rule = f"state_dict returned {reason}; a checkpoint holds a dict of tensors, numbers, text, lists and dicts"
            raise UserError(f"algorithm.target={target}: {rule}")
        return state

    def loaded(state: dict[str, Any]) -> None:
        try:
            load_state_dict(state)
        except Exception as error:  # whatever the user's code raises over a state of an earlier version of it
            reason = reason_in(type(algorithm), error)
            rule = "is it what state_dict of this version of the class returns?"
            raise UserError(
                f"algorithm.target={target}: load_state_dict failed over a checkpoint ({reason}); {rule}"
            ) from error

    for name, checked in (("state_dict", saved), ("load_state_dict", loaded)):
        setattr(algorithm, name, checked)


def _unreadable(state: dict[str, Any]) -> str | None:
    """What of a state torch does not read again, as checkpoints are read: without importing anything."""
    buffer = io.BytesIO()
    try:
        torch.save(state, buffer)
        torch.load(io.BytesIO(buffer.getvalue()), weights_only=True)
    except Exception as error:  # pickle's, or torch's own
        found = _REFUSED_CLASS.search(str(error))
        return found[1] if found else one_line(error)
    return None
