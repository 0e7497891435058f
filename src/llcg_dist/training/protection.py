"""What a machine does to its update before it leaves: clipping and Gaussian noise.

    Δ  = the learned parameters of its model less those it was sent
    Δ' = Δ · min(1, C / ‖Δ‖) + N(0, (z·C)²)        C is algorithm.clip, z is algorithm.noise

(Abadi et al., Deep Learning with Differential Privacy, 2016, with a machine in the place of an example: McMahan et al.,
Learning Differentially Private Recurrent Language Models, 2018; here every machine adds its own noise.) With noise,
BatchNorm's running statistics go back as they came: they would tell of the data without noise.
"""

import hashlib

import numpy as np
import torch
from torch import Tensor

from llcg_dist import seeding


class Protection:
    """Clips and noises the updates of one machine."""

    def __init__(self, clip: float, noise: float, statistics: Tensor, source: bytes | int, stream: int) -> None:
        """`statistics` [n] of bool: True at BatchNorm's running statistics. `source`: the job's seed, or the machine's
        secret. `stream`: the part's (seeding.py)."""
        self._clip, self._noise, self._statistics = clip, noise, statistics
        self._source, self._stream = source, stream

    @property
    def hides(self) -> bool:
        """Whether updates are noised, so that nothing else may tell of the data."""
        return self._noise > 0

    def applied(self, theta: Tensor, start: Tensor, round_: int) -> Tensor:
        """The model [n] that leaves the machine, which made `theta` [n] of `start` [n]; in memory of its own."""
        update = (theta.double() - start.double()).masked_fill_(self._statistics, 0)
        length = float(torch.linalg.vector_norm(update))
        if not length < float("inf"):  # the server sorts it out, and learns no finite number of a model that is hidden
            return torch.full_like(theta, torch.nan) if self.hides else theta.clone()
        update *= min(1.0, self._clip / length) if length else 1.0
        if not self.hides:
            moved = start.double() + update
            return torch.where(self._statistics, theta, moved.float())
        update += torch.from_numpy(self._drawn(update, round_)).masked_fill_(self._statistics, 0)
        return (start.double() + update).float()

    def _drawn(self, update: Tensor, round_: int) -> np.ndarray:
        """The noise. A secret is hashed with the update: where a round is repeated with another result the two noises
        are independent, because from the same noise on both the difference of the updates could be read."""
        source = self._source
        if isinstance(source, bytes):
            source = hashlib.sha256(source + update.numpy().tobytes()).digest()
        rng = seeding.noise_generator(source, self._stream, round_)
        return rng.normal(0.0, self._noise * self._clip, len(update))
