"""What every test finds: one thread per process, as in a rank, and floats as torch has them by default."""

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tests.helpers.wheel import build_wheel

# Bits and speed depend on it: here, and in the processes that tests start.
os.environ["OMP_NUM_THREADS"] = "1"
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _usual_floats() -> None:
    """A job flushes denormals for its whole process; a test that ran one must not leave that to the next."""
    torch.set_flush_denormal(False)


@pytest.fixture(autouse=True)
def _usual_log() -> Iterator[None]:
    """A job logs to its run directory for its whole process; what the next test logs must not look for that."""
    root = logging.getLogger()
    before = list(root.handlers)
    yield
    for handler in [handler for handler in root.handlers if handler not in before]:
        if isinstance(handler, logging.FileHandler):
            root.removeHandler(handler)
            handler.close()


@pytest.fixture(scope="session")
def built_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("package"))
