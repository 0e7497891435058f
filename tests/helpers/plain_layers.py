"""Pieces of a layer as one would write them, with autograd's own backward pass: what the package's own must equal."""

from torch import Tensor

from llcg_dist.models.dropout import _LEVELS, _dropped_levels, _random_levels
from llcg_dist.sampling.sparse_matrix import SparseMatrix


def relu_dropout_reference(x: Tensor, probability: float) -> Tensor:
    """relu_dropout with the same random numbers."""
    dropped = _dropped_levels(probability)
    kept = _random_levels(x) >= dropped - _LEVELS // 2
    return x.relu() * kept * (_LEVELS / (_LEVELS - dropped))


def layer_products_reference(
    matrix: SparseMatrix,
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    self_weight: Tensor | None = None,
    dst: Tensor | None = None,
) -> Tensor:
    """layer_products with a dense matrix."""
    output = matrix.to_dense() @ x @ weight.T + bias
    if self_weight is None:
        return output
    return output + (x[: len(matrix)] if dst is None else x[dst]) @ self_weight.T
