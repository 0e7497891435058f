"""A sparse matrix as three plain tensors, on whatever device they are."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class SparseMatrix:
    """CSR: row i's entries are values[indptr[i]:indptr[i+1]], in the columns `indices` of the same places.

    Not a torch CSR tensor: torch has no products of those on every device, and making one costs more than the three
    tensors it is made of. models/products.py multiplies by it.
    """

    indptr: Tensor
    indices: Tensor
    values: Tensor
    shape: tuple[int, int]

    def __len__(self) -> int:
        return self.shape[0]

    def tensor(self) -> Tensor:
        """The same as a torch CSR tensor, which shares its memory."""
        return torch.sparse_csr_tensor(self.indptr, self.indices, self.values, size=self.shape, check_invariants=False)

    def to_dense(self) -> Tensor:
        return self.tensor().to_dense()

    def __matmul__(self, x: Tensor) -> Tensor:
        """torch's own product with a dense matrix, for layers of a user's own."""
        return self.tensor() @ x
