"""A·X and X·W: values and gradients against dense matrices, and which of the two comes first."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from llcg_dist.models.products import _weight_first, layer_products, sparse_product
from llcg_dist.sampling.sparse_matrix import SparseMatrix
from tests.helpers.plain_layers import layer_products_reference


def random_matrix(rows: int, columns: int, share: float, seed: int, dtype: torch.dtype = torch.float64) -> SparseMatrix:
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(rows, columns, generator=generator, dtype=dtype)
    found = (values * (torch.rand(rows, columns, generator=generator) < share)).to_sparse_csr()
    return SparseMatrix(found.crow_indices(), found.col_indices(), found.values(), (rows, columns))


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 9), st.integers(1, 9), st.sampled_from([0.0, 0.3, 1.0]), st.integers(0, 99))
def test_a_sparse_product_and_its_gradients_are_those_of_the_dense_one(
    rows: int, columns: int, share: float, seed: int
) -> None:
    """Matrices without entries, with empty rows and with empty columns among them."""
    matrix = random_matrix(rows, columns, share, seed)
    x = torch.randn(columns, 4, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(sparse_product(matrix, x), matrix.to_dense() @ x)
    assert torch.autograd.gradcheck(lambda given: sparse_product(matrix, given), x)
    assert torch.autograd.gradgradcheck(lambda given: sparse_product(matrix, given).square(), x)


@pytest.mark.parametrize("index", [torch.int32, torch.int64])
def test_indices_keep_their_type_on_the_way_back(index: torch.dtype) -> None:
    found = random_matrix(5, 7, 0.5, 0, torch.float32)
    matrix = replace(found, indptr=found.indptr.to(index), indices=found.indices.to(index))
    x = torch.randn(7, 3, requires_grad=True)
    sparse_product(matrix, x).sum().backward()
    torch.testing.assert_close(x.grad, found.to_dense().sum(dim=0)[:, None].expand(7, 3))


@pytest.mark.parametrize(("width_in", "width_out"), [(40, 2), (2, 40)])
def test_both_orders_give_the_same(width_in: int, width_out: int) -> None:
    matrix, generator = random_matrix(30, 30, 0.5, 0), torch.Generator().manual_seed(1)
    x = torch.randn(30, width_in, generator=generator, dtype=torch.float64)
    weight = torch.randn(width_out, width_in, generator=generator, dtype=torch.float64)
    assert _weight_first(matrix, x, weight) == (width_out < width_in)
    bias, self_weight = (
        torch.randn(*shape, generator=generator, dtype=torch.float64) for shape in ((width_out,), weight.shape)
    )
    dst = torch.randperm(30, generator=generator)
    for own in ((), (self_weight,), (self_weight, dst)):
        expected = layer_products_reference(matrix, x, weight, bias, *own)
        torch.testing.assert_close(layer_products(matrix, x, weight, bias, *own), expected)


@pytest.mark.parametrize(("width_in", "width_out"), [(6, 1), (1, 6)])
def test_the_gradients_of_a_layers_products(width_in: int, width_out: int) -> None:
    generator = torch.Generator().manual_seed(2)
    matrix = random_matrix(4, 9, 0.4, 1)
    shapes = (9, width_in), (width_out, width_in), (width_out,), (width_out, width_in)
    given = [torch.randn(*shape, generator=generator, dtype=torch.float64, requires_grad=True) for shape in shapes]
    upstream = torch.randn(4, width_out, generator=generator, dtype=torch.float64)
    found, expected = (
        torch.autograd.grad((products(matrix, *given) * upstream).sum(), given)
        for products in (layer_products, layer_products_reference)
    )
    torch.testing.assert_close(found, expected)
    assert torch.autograd.gradcheck(lambda *given: layer_products(matrix, *given), given)
    assert torch.autograd.gradgradcheck(lambda *given: layer_products(matrix, *given), given)


def test_features_are_aggregated_first_where_most_rows_are_only_read() -> None:
    """A sampled block of the input side: narrow rows would save little, and every row read would need a product."""
    block, full = random_matrix(20, 200, 0.02, 0), random_matrix(200, 200, 0.02, 0)
    weight = torch.zeros(64, 128, dtype=torch.float64, requires_grad=True)
    features = torch.zeros(200, 128, dtype=torch.float64)
    assert not _weight_first(block, features, weight)
    with torch.no_grad():
        assert _weight_first(full, features, weight)
