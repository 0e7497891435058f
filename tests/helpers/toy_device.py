"""A device of its own for tests, registered with torch as a Python backend: its tensors are out of the CPU's reach, as
a GPU's are, and its kernels are the CPU's. To be imported in a process of its own: torch knows one such backend.
"""

import functools
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

NAME = "toy"
_memory: dict[int, Tensor] = {}
"""What tensors of the device hold, by the address of their storage: shallow copies share one."""


_VIEWS = (
    "as_strided", "diagonal", "expand", "permute", "select.int", "slice.Tensor", "split.Tensor",
    "split_with_sizes", "squeeze", "squeeze.dim", "t", "transpose.int", "unbind.int", "unsqueeze", "view", "view.dtype",
    "_reshape_alias",
)  # fmt: skip
"""Operators that torch would otherwise make of the strides of a tensor, which are those of what it holds."""


def _wrapped(held: Tensor) -> Tensor:
    tensor = torch._C._acc.create_empty_tensor(held.shape, held.dtype)
    _memory[tensor.untyped_storage()._cdata] = held
    return tensor


def _held(tensor: Tensor) -> Tensor:
    return _memory[tensor.untyped_storage()._cdata]


def _kernel(operator: Any, *arguments: Any, **options: Any) -> Any:
    """Any operator: on what the tensors hold, by the CPU's kernel."""
    given: dict[int, Tensor] = {}

    def unwrap(value: Any) -> Any:
        if isinstance(value, Tensor) and value.device.type == NAME:
            held = _held(value)
            given[id(held)] = value
            return held
        return torch.device("cpu") if isinstance(value, torch.device) else value

    def wrap(value: Any) -> Any:
        return given.get(id(value)) if id(value) in given else _wrapped(value)

    result = operator(*tree_map(unwrap, arguments), **tree_map(unwrap, options))
    return tree_map(lambda value: wrap(value) if isinstance(value, Tensor) else value, result)


def _copy_from(source: Tensor, target: Tensor, non_blocking: bool = False) -> Tensor:
    """Within the device, or between it and the CPU."""
    from_, to = (_held(tensor) if tensor.device.type == NAME else tensor for tensor in (source, target))
    to.copy_(from_)
    return target


def _made(operator: Any) -> Any:
    """The kernel of an operator that torch would otherwise make of one that gives its result another size."""

    def kernel(*arguments: Any, **options: Any) -> Tensor:
        return _wrapped(operator(*arguments, **(options | {"device": torch.device("cpu")})))

    return kernel


_setup_privateuseone_for_python_backend(NAME)
_library = torch.library.Library("aten", "IMPL")
_library.impl("_copy_from", _copy_from, "PrivateUse1")
for _view in _VIEWS:
    _packet, _, _overload = _view.partition(".")
    _operator = getattr(getattr(torch.ops.aten, _packet), _overload or "default")
    _library.impl(_view, functools.partial(_kernel, _operator), "PrivateUse1")
for _overload in ("arange", "arange.start", "arange.start_step"):
    _operator = getattr(torch.ops.aten.arange, _overload.partition(".")[2] or "default")
    _library.impl(_overload, _made(_operator), "PrivateUse1")
_fallback = torch.library.Library("_", "IMPL")
_fallback.fallback(_kernel, "PrivateUse1")
