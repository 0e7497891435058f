"""What every test finds: one thread per process, as in a rank, and floats as torch has them by default."""

import os
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


@pytest.fixture(scope="session")
def built_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("package"))
