"""Random number generators keyed by (seed, stream, round), never by a rank, a thread, the time or earlier draws.

A stream belongs to the server, to the initial weights or to a part. So a part draws the same batches whichever rank
trains it, loopback (all machines in one process) draws the same numbers as separate processes, and a resumed run needs
no generator state.
"""

import numpy as np
import torch

SERVER_STREAM = 0
INITIAL_WEIGHTS_STREAM = 1
_FIRST_PART_STREAM = 2
MIXING_STREAM = 0x6D6978
"""Of aggregate=learned, at the server; no job has so many parts."""
_PARTITION_KEY = 0x70617274


def part_stream(part: int) -> int:
    """The stream of the machine that trains this part."""
    return _FIRST_PART_STREAM + part


def generator(seed: int, stream: int, round_: int) -> np.random.Generator:
    """The generator of mini-batches, sampled neighbours, dropout and initial weights."""
    return np.random.default_rng(np.random.SeedSequence((seed, stream, round_)))


def diagnostics_generator(seed: int, stream: int, round_: int) -> np.random.Generator:
    """The generator of diagnostics, independent of training's, so that measuring changes no result."""
    return np.random.default_rng(np.random.SeedSequence((seed, stream, round_, 1)))


def noise_generator(secret: bytes | int, stream: int, round_: int) -> np.random.Generator:
    """The generator of the noise on a machine's update; `secret` is the job's seed, or bytes that the machine alone
    knows."""
    seed = secret if isinstance(secret, int) else int.from_bytes(secret, "big")
    return np.random.default_rng(np.random.SeedSequence((seed, stream, round_, 2)))


def partition_generator(seed: int) -> np.random.Generator:
    """The generator of random parts: a stream of its own, since a dataset may be drawn with the same seed. Parts that
    were drawn as a generated graph draws its classes would each have a few classes only."""
    return np.random.default_rng(np.random.SeedSequence((seed, _PARTITION_KEY)))


def seed_torch(rng: np.random.Generator) -> None:
    """Seeds torch's global generator, which dropout and initial weights draw from."""
    torch.manual_seed(torch_seed(rng))


def torch_seed(rng: np.random.Generator) -> int:
    """Draws a seed for torch.manual_seed."""
    return int(rng.integers(2**63))
