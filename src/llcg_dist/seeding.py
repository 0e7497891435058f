"""All randomness is derived from (seed, who, round), never from a rank or from what ran before.

So a part draws the same batches whichever rank trains it, all machines in one process draw what they would draw apart,
and a resumed run needs no generator state.
"""

import numpy as np
import torch

SERVER = 0
INITIAL_WEIGHTS = 1
_FIRST_PART = 2


def part(index: int) -> int:
    """The `who` of a part's machine."""
    return _FIRST_PART + index


def generator(seed: int, who: int, round_: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence((seed, who, round_)))


def measuring(seed: int, who: int, round_: int) -> np.random.Generator:
    """For what only looks at the training: apart from what that draws itself."""
    return np.random.default_rng(np.random.SeedSequence((seed, who, round_, 1)))


def seed_torch(rng: np.random.Generator) -> None:
    """Dropout and initial weights draw from torch's global generator."""
    torch.manual_seed(torch_seed(rng))


def torch_seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**63))
