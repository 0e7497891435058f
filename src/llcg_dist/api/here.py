"""Training within the calling process (cluster.backend=loopback), which gets its own state back afterwards."""

import contextlib
import logging
from collections.abc import Iterator

import torch

from llcg_dist.cli.train import prepare_job
from llcg_dist.config.schema import Config
from llcg_dist.job.checkpoint import CheckpointWriter
from llcg_dist.job.process import Rank
from llcg_dist.job.run import run
from llcg_dist.job.run_dir import finished_line
from llcg_dist.records.console import say


def train_here(config: Config) -> None:
    """Checks a job of one process, and runs it unless it is finished already; run_dir must be set."""
    with _state_restored():
        num_processes, run_dir = prepare_job(config)
        if num_processes == 0:
            say(finished_line(run_dir))
            return
        try:
            run(config, Rank())
        finally:
            CheckpointWriter.finish_all()  # after an interrupt, too, the run can go on


@contextlib.contextmanager
def _state_restored() -> Iterator[None]:
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
