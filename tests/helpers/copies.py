"""Counts the copies between the CPU and another device, whichever operator makes them."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

_READS_A_NUMBER = {"aten::_local_scalar_dense", "aten::nonzero", "aten::equal"}
"""Operators whose result the host has to wait for."""


class CountCopies(TorchDispatchMode):
    """Within it uploads and downloads are noted in their order, each as the shape of what crossed."""

    def __init__(self) -> None:
        super().__init__()
        self.uploads: list[tuple[int, ...]] = []
        self.downloads: list[tuple[int, ...]] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        name = func.name().split(".")[0]
        if name == "aten::copy_":
            self._note(args[1], args[0])
        elif name in ("aten::_to_copy", "aten::_copy_from"):
            self._note(args[0], result)
        elif name in _READS_A_NUMBER and any(isinstance(arg, Tensor) and _is_there(arg) for arg in args):
            self.downloads.append(())
        return result

    def _note(self, source: Tensor, target: Tensor) -> None:
        if _is_there(source) != _is_there(target):
            (self.uploads if _is_there(target) else self.downloads).append(tuple(source.shape))

    def take(self) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
        """(uploads, downloads) since the last call."""
        taken = self.uploads, self.downloads
        self.uploads, self.downloads = [], []
        return taken


def _is_there(tensor: Tensor) -> bool:
    return tensor.device != torch.device("cpu")
