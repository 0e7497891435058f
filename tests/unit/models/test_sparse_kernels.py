"""What the kernels of all devices have in common: the transposes that they multiply by in a backward pass."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from llcg_dist.models.sparse_kernels import multiply, sorted_transpose, transposed
from llcg_dist.sampling.sparse_matrix import SparseMatrix
from tests.unit.models.test_products import random_matrix


def parts(matrix: SparseMatrix) -> list[torch.Tensor]:
    return [matrix.indptr, matrix.indices, matrix.values]


@settings(max_examples=30, deadline=None)
@given(
    st.integers(1, 9),
    st.integers(1, 9),
    st.sampled_from([0.0, 0.3, 1.0]),
    st.sampled_from([torch.int32, torch.int64]),
)
def test_sorting_and_counting_give_the_same_transpose_to_the_last_bit(
    rows: int, columns: int, share: float, index: torch.dtype
) -> None:
    """The one is for GPUs, the other for CPUs; without entries, with empty rows and columns, and with all entries."""
    found = random_matrix(rows, columns, share, 7)
    matrix = SparseMatrix(found.indptr.to(index), found.indices.to(index), found.values, (rows, columns))
    counted, by_sorting = transposed(matrix), sorted_transpose(matrix)
    assert counted.shape == by_sorting.shape == (columns, rows)
    assert all(map(torch.equal, parts(counted), parts(by_sorting)))
    assert by_sorting.indptr.dtype == by_sorting.indices.dtype == index
    assert torch.equal(by_sorting.to_dense(), matrix.to_dense().T)


def test_a_backward_pass_off_the_cpu_reads_no_number_back() -> None:
    """The meta device has no numbers: whatever asks for one fails."""
    matrix = random_matrix(5, 7, 0.5, 0, torch.float32)
    indptr, indices, values = (tensor.to("meta") for tensor in parts(matrix))
    there = SparseMatrix(indptr, indices, values, matrix.shape)
    back = transposed(there)
    assert back.shape == (7, 5)
    assert [tensor.shape for tensor in parts(back)] == [tensor.shape for tensor in parts(transposed(matrix))]
    assert multiply(back, torch.empty(5, 3, device="meta")).shape == (7, 3)
    with pytest.raises((NotImplementedError, RuntimeError)):
        there.values.cpu()
