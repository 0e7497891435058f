"""How torch computes on the CPU: what a rank sets once, and threads for a while."""

import contextlib
import ctypes
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


def prepare_computing(threads: int) -> None:
    """What every rank sets before it computes.

    A step frees its large buffers and needs them again in the next: glibc would give them back to the kernel, which
    hands them out again page by page, emptied. At most half a gigabyte is kept.
    """
    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)  # denormals slow a step down many times and mean nothing to the result
    glibc = ctypes.CDLL(None)
    glibc.mallopt(-3, 2**28)  # M_MMAP_THRESHOLD: larger ones still come and go
    glibc.mallopt(-1, 2**29)  # M_TRIM_THRESHOLD
