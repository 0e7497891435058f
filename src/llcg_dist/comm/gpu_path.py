"""The way of contents between two ranks that have a GPU each: from one GPU's memory to the other's, by NCCL.

Above it contents are on the CPU, where updates are screened and averaged. What says which content comes, and how long
it is, crosses on Gloo (comm/links.py).
"""

import contextlib
from datetime import timedelta
from typing import Any

import torch
from torch import Tensor

from llcg_dist.data.upload import upload


class GpuPath:
    """One end of it."""

    def __init__(self, group: Any, peer: int, device: str) -> None:
        """`group`: a process group of two that sends tensors of this device; `peer`: the other member."""
        self._group, self._peer, self._device = group, peer, device

    def send(self, content: Tensor) -> "Transfer":
        """Work that ends when the content has left."""
        with self._current():
            there = upload(content, self._device)
            return Transfer(self._group.send([there], self._peer, 0), there)

    def receive(self, place: Tensor, limit: timedelta) -> None:
        """Waits until as many bytes as `place` has have arrived there."""
        with self._current():  # whoever waits may be a thread of its own, which begins with the first GPU
            there = torch.empty_like(place, device=self._device)
            self._group.recv([there], self._peer, 0).wait(limit)
            place.copy_(there)

    def _current(self) -> contextlib.AbstractContextManager[object]:
        on_gpu = torch.device(self._device).type == "cuda"
        return torch.cuda.device(self._device) if on_gpu else contextlib.nullcontext()


class Transfer:
    """Work, and the memory that it reads."""

    def __init__(self, work: Any, memory: Tensor) -> None:
        self._work, self._memory = work, memory

    def wait(self, limit: timedelta) -> None:
        self._work.wait(limit)
