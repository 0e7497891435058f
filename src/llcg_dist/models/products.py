"""The products of a message-passing layer, A·X·W with a sparse A, in the cheaper of the two orders.

A is the CSR matrix of a block. The sparse product is torch's embedding_bag kernel with a backward pass of our own:
torch's product of a CSR tensor with a dense one is slower, above all in the backward pass.
"""

from dataclasses import dataclass
from typing import Any

import torch
from scipy.sparse import csr_array
from torch import Tensor
from torch.nn import functional

from llcg_dist.data.feature_rows import LazyRows, Rows, materialize

MULTIPLY_ADDS_PER_EDGE = 30
"""Cost model: one number of one edge in a sparse product takes about as long as 30 multiply-adds of a dense product."""


def _spmm(matrix: Tensor, x: Tensor) -> Tensor:
    """CSR matrix times dense x: each row is a weighted sum of rows of x, for which embedding_bag has a fast kernel."""
    offsets, weights = matrix.crow_indices()[:-1], matrix.values().to(x.dtype)
    return functional.embedding_bag(
        matrix.col_indices(), x.contiguous(), offsets, mode="sum", per_sample_weights=weights
    )


class _SparseProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, matrix: Tensor) -> Tensor:
        ctx.matrix = matrix
        return _spmm(matrix, x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return sparse_product(_transposed(ctx.matrix), gradients[0]), None


class _DstRowsAndProduct(torch.autograd.Function):
    """(x[:len(matrix)], matrix·x): the rows of a block's destination nodes, and the product.

    As one function, because the backward pass then adds both gradients in one tensor.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, matrix: Tensor) -> tuple[Tensor, Tensor]:
        ctx.matrix = matrix
        return x[: len(matrix)], _spmm(matrix, x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        dst_gradient, product_gradient = gradients
        gradient = sparse_product(_transposed(ctx.matrix), product_gradient)
        gradient[: len(dst_gradient)] += dst_gradient
        return gradient, None


def sparse_product(matrix: Tensor, x: Tensor) -> Tensor:
    """[rows, width]: a CSR matrix [rows, columns] times x [columns, width]; differentiable in x, not in the matrix."""
    return _SparseProduct.apply(x, matrix)


def _dst_rows_and_product(matrix: Tensor, x: Rows) -> tuple[Tensor, Tensor]:
    """(x[:len(matrix)], matrix·x); for LazyRows the product reads the feature table in place."""
    if not isinstance(x, LazyRows):
        return _DstRowsAndProduct.apply(x, matrix)
    indptr, columns = matrix.crow_indices(), x.nodes.index_select(0, matrix.col_indices())
    csr = (indptr, columns.to(indptr.dtype), matrix.values())
    over_table = torch.sparse_csr_tensor(*csr, size=(len(matrix), len(x.table)), check_invariants=False)
    return x[: len(matrix)], sparse_product(over_table, x.table)


def layer_products(
    matrix: Tensor, x: Rows, weight: Tensor, bias: Tensor, self_weight: Tensor | None = None, dst: Tensor | None = None
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


def layer_products_reference(
    matrix: Tensor,
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    self_weight: Tensor | None = None,
    dst: Tensor | None = None,
) -> Tensor:
    """layer_products as one would write it, with autograd's own backward pass; tests compare the two."""
    output = matrix.to_dense() @ x @ weight.T + bias
    if self_weight is None:
        return output
    return output + (x[: len(matrix)] if dst is None else x[dst]) @ self_weight.T


def _weight_first(matrix: Tensor, x: Rows, weight: Tensor) -> bool:
    """Whether A·(X·W) is cheaper than (A·X)·W, forward and backward pass together."""
    width_out, width_in = weight.shape
    rows, columns = matrix.shape
    sizes = Sizes(rows, columns, matrix.values().numel(), width_in, width_out)
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


def _transposed(matrix: Tensor) -> Tensor:
    """The transpose as CSR, by scipy's counting sort: several times as fast as sorting the indices."""
    values, indices, indptr = matrix.values().cpu(), matrix.col_indices().cpu(), matrix.crow_indices().cpu()
    csc = csr_array((values.numpy(), indices.numpy(), indptr.numpy()), shape=tuple(matrix.shape)).tocsc()
    indptr, indices, values = (torch.from_numpy(array) for array in (csc.indptr, csc.indices, csc.data))
    transposed = torch.sparse_csr_tensor(indptr, indices, values, size=matrix.shape[::-1], check_invariants=False)
    return transposed.to(matrix.device)
