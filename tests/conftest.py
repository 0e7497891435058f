import os

import pytest
import torch

# One thread per process, as the launcher sets it: bits and speed depend on it.
os.environ["OMP_NUM_THREADS"] = "1"


@pytest.fixture(autouse=True)
def _usual_floats() -> None:
    """A job flushes denormals for its whole process; a test that ran one must not leave that to the next."""
    torch.set_flush_denormal(False)
