"""All randomness is derived from (seed, stream, round), never from a rank, a thread, the time or what ran before.

A stream belongs to the server, to the initial weights or to a part. So a part draws the same batches whichever rank
trains it, all machines in one process draw what they would draw apart, and a resumed run needs no generator state.
"""

import numpy as np
import torch

SERVER_STREAM = 0
INITIAL_WEIGHTS_STREAM = 1
_FIRST_PART_STREAM = 2


def part_stream(part: int) -> int:
    """The stream of a part's machine."""
    return _FIRST_PART_STREAM + part


def generator(seed: int, stream: int, round_: int) -> np.random.Generator:
    """For what training itself draws: batches, sampled neighbours, dropout, initial weights."""
    return np.random.default_rng(np.random.SeedSequence((seed, stream, round_)))


def diagnostics_generator(seed: int, stream: int, round_: int) -> np.random.Generator:
    """For what only measures the training: independent of what training draws."""
    return np.random.default_rng(np.random.SeedSequence((seed, stream, round_, 1)))


def seed_torch(rng: np.random.Generator) -> None:
    """Dropout and initial weights draw from torch's global generator."""
    torch.manual_seed(torch_seed(rng))


def torch_seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**63))
