"""A job within a process that goes on afterwards: what the job sets there is put back."""

import contextlib
import logging
from collections.abc import Iterator

import torch


@contextlib.contextmanager
def state_restored() -> Iterator[None]:
    """A rank has its process to itself: it sets torch's threads, random numbers and denormals, and its log."""
    threads, numbers, flushes = torch.get_num_threads(), torch.get_rng_state(), _flushes_denormals()
    log = logging.getLogger("llcg_dist")
    handlers, level = list(log.handlers), log.level
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        torch.set_rng_state(numbers)
        torch.set_flush_denormal(flushes)
        for handler in set(log.handlers) - set(handlers):
            handler.close()
        log.handlers[:] = handlers
        log.setLevel(level)


def _flushes_denormals() -> bool:
    """Whether this thread's arithmetic takes denormal numbers for zero, which torch does not tell."""
    return torch.tensor([1e-39]).mul(1.0).view(torch.int32).item() == 0
