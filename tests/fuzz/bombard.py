"""Many damaged inputs, one after the other.

LLCG_FUZZ_INPUTS sets how many are tried in all (5,000 in `make test`, 100,000 in `make fuzz`).
"""

import contextlib
import os
import random
import resource
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from llcg_dist.errors import UserError

INPUTS = int(os.environ.get("LLCG_FUZZ_INPUTS", 5000))


def bombard(share: float, attempt: Callable[[random.Random], None]) -> None:
    """`share` of all inputs, each seeded, timed, and allowed to end well or with a UserError of one line."""
    refused = 0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for seed in range(round(INPUTS * share)):
        started, message = time.process_time(), None  # of the processor: others may keep it busy
        try:
            attempt(random.Random(seed))
        except UserError as error:
            message = str(error)
        if message is not None:
            refused += 1
            assert message
            assert "\n" not in message
        assert time.process_time() - started < 10, f"seed {seed} took too long"
    grown_mb = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown_mb < 1000
    assert refused > 0, "no input was refused: nothing was tried"


@contextlib.contextmanager
def damaged(path: Path, content: bytes) -> Iterator[None]:
    original = path.read_bytes()
    path.write_bytes(content)
    try:
        yield
    finally:
        path.write_bytes(original)
