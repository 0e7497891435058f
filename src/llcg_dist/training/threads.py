"""How many CPU threads torch computes with for a while."""

import contextlib
from collections.abc import Iterator

import torch


@contextlib.contextmanager
def using_threads(count: int | None) -> Iterator[None]:
    """`count` threads within it, and as many as before afterwards; None: no change."""
    before = torch.get_num_threads()
    if count is None or count == before:
        yield
        return
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
