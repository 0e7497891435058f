"""Line 11 of Algorithm 2: the server takes the weighted average of the models that the machines send."""

from collections.abc import Sequence

from torch import Tensor

from llcg_dist.config.algorithm import Averaging


def weighted_average(updates: Sequence[Tensor], weights: Sequence[float]) -> Tensor:
    """Σ w_p·θ_p with the weights scaled to sum 1; the vectors are [n] float32, and so is the result.

    Summed in float64 and in part order, so that the bits do not depend on which machine answered first.
    """
    scale = 1.0 / sum(weights)
    total = updates[0].double() * (weights[0] * scale)
    for update, weight in zip(updates[1:], weights[1:], strict=True):
        total.add_(update.double(), alpha=weight * scale)
    return total.float()


def averaging_weights(averaging: Averaging, train_nodes: Sequence[int]) -> list[float]:
    """The weight of each part. `uniform`: 1 each, as in the paper. `train_nodes`: the size of its training set."""
    if averaging == Averaging.train_nodes:
        return [float(n) for n in train_nodes]
    return [1.0] * len(train_nodes)
