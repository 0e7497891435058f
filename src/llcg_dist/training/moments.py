"""Mean and variance of what enters a BatchNorm, in float64, merged batch by batch (Chan et al., 1979)."""

import contextlib
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm


class Moments:
    """Mean and variance of rows that come in pieces."""

    def __init__(self) -> None:
        self._count = 0
        self._mean = self._squares = torch.zeros((), dtype=torch.float64)  # squares: sum of squared distances

    def add(self, rows: Tensor) -> None:
        """Takes [n, width] into account."""
        rows = rows.double()
        mean, total = rows.mean(dim=0), self._count + len(rows)
        offset = mean - self._mean
        squares = (rows - mean).square().sum(dim=0)
        self._squares = self._squares + squares + offset.square() * (self._count * len(rows) / total)
        self._mean = self._mean + offset * (len(rows) / total)
        self._count = total

    def write(self, norm: _BatchNorm) -> None:
        """The running statistics become mean and unbiased variance of all rows."""
        norm.get_buffer("running_mean").copy_(self._mean)
        norm.get_buffer("running_var").copy_(self._squares / max(1, self._count - 1))


@contextlib.contextmanager
def observed_input(module: nn.Module, observe: Callable[[Tensor], object]) -> Iterator[None]:
    """`observe` is called with what enters the module."""
    handle = module.register_forward_pre_hook(lambda _, inputs: (observe(inputs[0]), None)[1])
    try:
        yield
    finally:
        handle.remove()
