"""The kernels of a sparse matrix times a dense one, by device: the one place where a layer's code differs by it.

On every device a product is torch's embedding_bag, each row a weighted sum of rows: torch's product of a CSR tensor
with a dense one is slower on a CPU, above all in the backward pass. The backward pass multiplies by the transpose. That
is made by a counting sort on a CPU, and elsewhere by sorting the columns on the device, so that nothing of a step comes
back to the host or waits for it. Both keep the order of the rows within a column: sums have the same order every time,
which adding up by atomics (index_add) would not.
"""

import torch
from scipy.sparse import csr_array
from torch import Tensor
from torch.nn import functional

from llcg_dist.sampling.sparse_matrix import SparseMatrix


def multiply(matrix: SparseMatrix, x: Tensor) -> Tensor:
    """[rows, width]: matrix [rows, columns] times x [columns, width]; each row is a weighted sum of rows of x."""
    weights = matrix.values.to(x.dtype)
    return functional.embedding_bag(
        matrix.indices, x.contiguous(), matrix.indptr[:-1], mode="sum", per_sample_weights=weights
    )


def transposed(matrix: SparseMatrix) -> SparseMatrix:
    """The transpose, whose entries in a row are in the order of the matrix's rows."""
    return _counted(matrix) if matrix.values.device.type == "cpu" else sorted_transpose(matrix)


def _counted(matrix: SparseMatrix) -> SparseMatrix:
    """By scipy's counting sort: several times as fast on a CPU as sorting the indices."""
    arrays = (matrix.values.numpy(), matrix.indices.numpy(), matrix.indptr.numpy())
    csc = csr_array(arrays, shape=matrix.shape).tocsc()
    indptr, indices, values = (torch.from_numpy(array) for array in (csc.indptr, csc.indices, csc.data))
    return SparseMatrix(indptr, indices, values, matrix.shape[::-1])


def sorted_transpose(matrix: SparseMatrix) -> SparseMatrix:
    """By a stable sort of the columns, with shapes that are known beforehand: a GPU need not be waited for."""
    rows, columns = matrix.shape
    kind, device = matrix.indices.dtype, matrix.indices.device
    column, order = matrix.indices.sort(stable=True)
    numbers = torch.arange(rows, dtype=kind, device=device)
    row = torch.repeat_interleave(numbers, matrix.indptr.diff(), output_size=len(column))
    indptr = torch.searchsorted(
        column, torch.arange(columns + 1, dtype=kind, device=device), out_int32=kind == torch.int32
    )
    return SparseMatrix(indptr, row.index_select(0, order), matrix.values.index_select(0, order), (columns, rows))
