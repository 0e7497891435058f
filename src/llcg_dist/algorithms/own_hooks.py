"""What the hooks of a user's own method return, checked where they return it: later it would fail far from there."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from llcg_dist.algorithms.base import Algorithm
from llcg_dist.errors import UserError

Hook = Callable[..., Tensor]


def check_hooks(algorithm: Algorithm, target: str) -> Algorithm:
    """The method, whose hooks from now on return vectors like the one that they were given first, or raise a
    UserError."""
    if algorithm.changes_gradients:
        _wrap(algorithm, "local_gradient", target)
    if algorithm.aggregates_by_itself:
        _wrap(algorithm, "aggregate", target, _in_memory_of_its_own)
    if type(algorithm).correct is not Algorithm.correct:
        _wrap(algorithm, "correct", target)
    if algorithm.keeps_state != (type(algorithm).load_state_dict is not Algorithm.load_state_dict):
        raise UserError(f"algorithm.target={target}: must have both state_dict and load_state_dict, or neither")
    if algorithm.keeps_state:
        _check_state(algorithm, target)
    return algorithm


def _wrap(
    algorithm: Algorithm, name: str, target: str, finish: Callable[..., Tensor] = lambda found, *given: found
) -> None:
    hook: Hook = getattr(algorithm, name)

    def checked(like: Tensor, *others: Any) -> Tensor:
        found = hook(like, *others)
        if not isinstance(found, Tensor) or (found.shape, found.dtype) != (like.shape, like.dtype):
            returned = f"{found.dtype} {list(found.shape)}" if isinstance(found, Tensor) else type(found).__name__
            rule = f"{name} returned {returned}, not a vector of {like.dtype} {list(like.shape)} like its first input"
            raise UserError(f"algorithm.target={target}: {rule}")
        return finish(found, like, *others)

    setattr(algorithm, name, checked)


def _check_state(algorithm: Algorithm, target: str) -> None:
    state_dict = algorithm.state_dict

    def checked() -> dict[str, Any]:
        state = state_dict()
        odd = _not_storable(state) if isinstance(state, dict) else f"a {type(state).__name__}"
        if odd:
            rule = f"state_dict returned {odd}: a checkpoint holds a dict of tensors, numbers, text, lists and dicts"
            raise UserError(f"algorithm.target={target}: {rule}")
        return state

    setattr(algorithm, "state_dict", checked)  # noqa: B010 (mypy: a method)


def _not_storable(value: Any) -> str | None:
    """What of a value a checkpoint, which is read without executing anything, cannot hold."""
    if isinstance(value, Tensor) or type(value) in (bool, int, float, str, type(None)):
        return None
    inner = [*value, *value.values()] if isinstance(value, dict) else value
    if isinstance(inner, list | tuple):
        return next((odd for odd in map(_not_storable, inner) if odd), None)
    return f"a {type(value).__name__}"


def _in_memory_of_its_own(found: Tensor, theta: Tensor, models: Any) -> Tensor:
    """The machines' models lie where the next ones will arrive."""
    taken = {vector.untyped_storage().data_ptr() for vector in (theta, *models.vectors)}
    return found.clone() if found.untyped_storage().data_ptr() in taken else found
