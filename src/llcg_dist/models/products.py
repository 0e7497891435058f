"""The products of a message-passing layer, A·X·W with a sparse A, in the cheaper of the two orders.

A is the sparse matrix of a block. The kernels of A·X and of its backward pass are chosen by device in
models/sparse_kernels.py.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from llcg_dist.data.feature_rows import LazyRows, Rows, materialize
from llcg_dist.models.sparse_kernels import multiply, transposed
from llcg_dist.sampling.sparse_matrix import SparseMatrix

MULTIPLY_ADDS_PER_EDGE = 30
"""Cost model: one number of one edge in a sparse product takes about as long as 30 multiply-adds of a dense product."""


class _SparseProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, matrix: SparseMatrix) -> Tensor:
        ctx.matrix = matrix
        return multiply(matrix, x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return sparse_product(transposed(ctx.matrix), gradients[0]), None


class _DstRowsAndProduct(torch.autograd.Function):
    """(x[:len(matrix)], matrix·x): the rows of a block's destination nodes, and the product.

    As one function, because the backward pass then adds both gradients in one tensor.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, matrix: SparseMatrix) -> tuple[Tensor, Tensor]:
        ctx.matrix = matrix
        return x[: len(matrix)], multiply(matrix, x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        dst_gradient, product_gradient = gradients
        gradient = sparse_product(transposed(ctx.matrix), product_gradient)
        gradient[: len(dst_gradient)] += dst_gradient
        return gradient, None


def sparse_product(matrix: SparseMatrix, x: Tensor) -> Tensor:
    """[rows, width]: matrix [rows, columns] times x [columns, width]; differentiable in x, not in the matrix."""
    return _SparseProduct.apply(x, matrix)


@dataclass(frozen=True)
class SummedRows(LazyRows):
    """Features whose product with a block's matrix is known already."""

    matrix: SparseMatrix
    dst_rows: Tensor
    product: Tensor

    @property
    def nbytes(self) -> int:
        return self.nodes.nbytes + self.dst_rows.nbytes + self.product.nbytes


def summed_ahead(matrix: SparseMatrix, x: LazyRows, weight: Tensor) -> LazyRows:
    """x with what layer_products(matrix, x, weight, …) needs of it and no weight is needed for."""
    if _weight_first(matrix, x, weight):
        return x
    return SummedRows(x.table, x.nodes, matrix, *_dst_rows_and_product(matrix, x))


def _dst_rows_and_product(matrix: SparseMatrix, x: Rows) -> tuple[Tensor, Tensor]:
    """(x[:len(matrix)], matrix·x); for LazyRows the product reads the feature table in place."""
    if isinstance(x, SummedRows) and x.matrix is matrix:
        return x.dst_rows, x.product
    if not isinstance(x, LazyRows):
        return _DstRowsAndProduct.apply(x, matrix)
    columns = x.nodes.index_select(0, matrix.indices).to(matrix.indptr.dtype)
    over_table = SparseMatrix(matrix.indptr, columns, matrix.values, (len(matrix), len(x.table)))
    return x[: len(matrix)], sparse_product(over_table, x.table)


def layer_products(
    matrix: SparseMatrix,
    x: Rows,
    weight: Tensor,
    bias: Tensor,
    self_weight: Tensor | None = None,
    dst: Tensor | None = None,
) -> Tensor:
    """[rows, out]: matrix [rows, columns] · x [columns, in] · weight^T [in, out] + bias [out].

    With `self_weight` [out, in] plus the destination nodes' own rows times its transpose; these are x[dst], or the
    first rows of x where `dst` is None.
    """
    weight_first = _weight_first(matrix, x, weight)
    if weight_first:
        product = sparse_product(matrix, functional.linear(materialize(x), weight))
        dst_rows = x[: len(matrix)] if dst is None else x[dst]
    elif dst is None:
        dst_rows, product = _dst_rows_and_product(matrix, x)
    else:
        dst_rows, product = x[dst], sparse_product(matrix, materialize(x))
    if self_weight is None:
        return product.add_(bias) if weight_first else functional.linear(product, weight, bias)
    output = functional.linear(dst_rows, self_weight, bias)
    if weight_first:
        return output.add_(product)
    return output.addmm_(product.to(output.dtype), weight.T.to(output.dtype))  # in place autocast converts nothing


def _weight_first(matrix: SparseMatrix, x: Rows, weight: Tensor) -> bool:
    """Whether A·(X·W) is cheaper than (A·X)·W, forward and backward pass together."""
    width_out, width_in = weight.shape
    rows, columns = matrix.shape
    sizes = Sizes(rows, columns, matrix.values.numel(), width_in, width_out)
    return sizes.weight_first(torch.is_grad_enabled(), x.requires_grad)


@dataclass(frozen=True)
class Sizes:
    """Of the product A·X·W: A [rows, columns] has so many entries, W is [width_in, width_out]."""

    rows: int
    columns: int
    entries: int
    width_in: int
    width_out: int

    def weight_first(self, has_backward: bool = False, x_has_gradient: bool = False) -> bool:
        """Whether A·(X·W) is cheaper than (A·X)·W, forward and backward pass together.

        X·W first makes the rows of the sparse product narrower where out < in, but multiplies all `columns` rows by W
        instead of `rows`. Features need no gradient: A·X of features has no backward pass.
        """
        sparse_per_column = MULTIPLY_ADDS_PER_EDGE * self.entries
        dense_per_row = (1 + has_backward + x_has_gradient) * self.width_in * self.width_out
        weight_first = sparse_per_column * self.width_out * (1 + has_backward) + dense_per_row * self.columns
        aggregation_first = sparse_per_column * self.width_in * (1 + x_has_gradient) + dense_per_row * self.rows
        return bool(weight_first < aggregation_first)
