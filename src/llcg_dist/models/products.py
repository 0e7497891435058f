"""The two products of a message-passing layer, A·X and X·W, and which of them comes first.

A is a block's CSR matrix. torch's own product of it with X is slower, on the way back above all.
"""

from typing import Any

import torch
from scipy.sparse import csr_array
from torch import Tensor
from torch.nn import functional

from llcg_dist.data.feature_rows import LazyRows, Rows, materialize

MULTIPLY_ADDS_PER_EDGE = 30
"""Multiply-adds of a dense product that take as long as carrying one number along one edge, roughly."""


def _bags(matrix: Tensor, x: Tensor) -> Tensor:
    """A row of the matrix is a bag of weighted rows of x, which is what embeddings have a fast kernel for."""
    offsets, weights = matrix.crow_indices()[:-1], matrix.values().to(x.dtype)
    return functional.embedding_bag(
        matrix.col_indices(), x.contiguous(), offsets, mode="sum", per_sample_weights=weights
    )


class _SparseProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, matrix: Tensor) -> Tensor:
        ctx.matrix = matrix
        return _bags(matrix, x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return sparse_product(_transposed(ctx.matrix), gradients[0]), None


class _OwnAndProduct(torch.autograd.Function):
    """The first rows of x, which are those that a block computes, and the product: their gradients share an array."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, matrix: Tensor) -> tuple[Tensor, Tensor]:
        ctx.matrix = matrix
        return x[: len(matrix)], _bags(matrix, x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        own, product = gradients
        found = sparse_product(_transposed(ctx.matrix), product)
        found[: len(own)] += own
        return found, None


def sparse_product(matrix: Tensor, x: Tensor) -> Tensor:
    """[rows, width]: a CSR matrix [rows, columns] of constants times x [columns, width]."""
    return _SparseProduct.apply(x, matrix)


def _own_and_product(matrix: Tensor, x: Rows) -> tuple[Tensor, Tensor]:
    if not isinstance(x, LazyRows):
        return _OwnAndProduct.apply(x, matrix)
    indptr, columns = matrix.crow_indices(), x.nodes.index_select(0, matrix.col_indices())
    parts = (indptr, columns.to(indptr.dtype), matrix.values())
    widened = torch.sparse_csr_tensor(*parts, size=(len(matrix), len(x.table)), check_invariants=False)
    return x[: len(matrix)], sparse_product(widened, x.table)


def layer_products(
    matrix: Tensor, x: Rows, weight: Tensor, bias: Tensor, own_weight: Tensor | None = None, dst: Tensor | None = None
) -> Tensor:
    """[rows, out]: matrix [rows, columns] times x [columns, in] times weight [out, in] transposed, plus bias [out] and,
    where the node itself has a weight of its own, its row times that. `dst`: see Block."""
    narrow_first = _narrow_first(matrix, x, weight)
    if narrow_first:
        product = sparse_product(matrix, functional.linear(materialize(x), weight))
        own = x[: len(matrix)] if dst is None else x[dst]
    elif dst is None:
        own, product = _own_and_product(matrix, x)
    else:
        own, product = x[dst], sparse_product(matrix, materialize(x))
    found = bias.repeat(len(matrix), 1) if own_weight is None else functional.linear(own, own_weight, bias)
    return found.add_(product) if narrow_first else found.addmm_(product, weight.T)


def _narrow_first(matrix: Tensor, x: Rows, weight: Tensor) -> bool:
    """Whether X·W comes first: it makes the rows that go along the edges narrower, but there are more rows to multiply.

    Features need no gradient, so A·X in front costs nothing on the way back.
    """
    (rows, columns), (width_out, width_in) = matrix.shape, weight.shape
    learns, x_learns = torch.is_grad_enabled(), x.requires_grad
    edges, products = MULTIPLY_ADDS_PER_EDGE * matrix.values().numel(), (1 + learns + x_learns) * width_in * width_out
    weight_first = edges * width_out * (1 + learns) + products * columns
    return bool(weight_first < edges * width_in * (1 + x_learns) + products * rows)


def _transposed(matrix: Tensor) -> Tensor:
    """scipy's transposition counts; sorting the indices takes several times as long."""
    values, indices, indptr = matrix.values().cpu(), matrix.col_indices().cpu(), matrix.crow_indices().cpu()
    turned = csr_array((values.numpy(), indices.numpy(), indptr.numpy()), shape=tuple(matrix.shape)).tocsc()
    indptr, indices, values = (torch.from_numpy(part) for part in (turned.indptr, turned.indices, turned.data))
    transposed = torch.sparse_csr_tensor(indptr, indices, values, size=matrix.shape[::-1], check_invariants=False)
    return transposed.to(matrix.device)
