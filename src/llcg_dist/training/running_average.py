"""evaluate.ema: an exponential average of the rounds' models, which is scored and saved in their place."""

from torch import Tensor


class RunningAverage:
    """Σ β^(r−i)·θ_i / Σ β^(r−i) over the rounds i = 1..r.

    The initial weights have no part in it, and the first rounds no more weight than β^(r−i) gives them.

    BatchNorm's running statistics are averaged like the parameters that they belong to.
    """

    def __init__(self, beta: float) -> None:
        """`beta` 0: there is no average."""
        self._beta = beta
        self._vector: Tensor | None = None

    def step(self, theta: Tensor, round_: int) -> Tensor | None:
        """The average [n] after a round (from 1) that led to `theta` [n]; None where there is none."""
        if self._beta == 0:
            return None
        if self._vector is None:
            self._vector = theta.clone()
        else:
            self._vector = self._vector.lerp(theta, (1 - self._beta) / (1 - self._beta**round_))
        return self._vector

    def scored(self, theta: Tensor) -> Tensor:
        """What stands for the last model `theta` where it is scored and saved."""
        return theta if self._vector is None else self._vector

    def load(self, vector: Tensor | None, size: int) -> None:
        """Goes on from the average of a checkpoint, for a model of `size` values."""
        if self._beta and (vector is None or vector.shape != (size,)):
            raise ValueError(f"no average of models of {size} values (evaluate.ema={self._beta:g})")
        self._vector = vector
