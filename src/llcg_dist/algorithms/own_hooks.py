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


def _in_memory_of_its_own(found: Tensor, theta: Tensor, models: Any) -> Tensor:
    """The machines' models lie where the next ones will arrive."""
    taken = {vector.untyped_storage().data_ptr() for vector in (theta, *models.vectors)}
    return found.clone() if found.untyped_storage().data_ptr() in taken else found
