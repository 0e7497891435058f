"""Room for the hidden states of a pass over a full graph: in memory, or in a scratch folder on disk."""

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from llcg_dist.config.train import EvaluateConfig, Precision
from llcg_dist.data.rows import Array
from llcg_dist.errors import UserError


@dataclass(frozen=True)
class HiddenStates:
    """Where hidden states are kept (evaluate.scratch, or memory), and in which type (evaluate.states)."""

    scratch: str | None = None
    precision: str = Precision.float32

    @classmethod
    def of(cls, evaluate: EvaluateConfig) -> "HiddenStates":
        return cls(evaluate.scratch, evaluate.states)

    def empty(self, shape: tuple[int, int], rows: int, precision: str, device: torch.device | None = None) -> Tensor:
        """An uninitialised state. `rows` of it will be written; the others take up neither memory nor disk."""
        dtype = _TYPES[precision]
        if self.scratch is None:
            return torch.empty(shape, dtype=dtype, device=device)
        whole_numbers = np.dtype(f"i{dtype.itemsize}")  # NumPy has no bfloat16
        array = _scratch_array(self.scratch, shape, whole_numbers, rows * shape[1] * dtype.itemsize)
        return torch.from_numpy(array).view(dtype)


_TYPES: dict[str, torch.dtype] = {Precision.float32: torch.float32, Precision.bfloat16: torch.bfloat16}


IN_MEMORY = HiddenStates()


def _scratch_array(folder: str, shape: tuple[int, int], dtype: "np.dtype[Any]", needed: int) -> Array:
    """An array in an unnamed temporary file, which is deleted with the array. `needed`: bytes to be written."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(folder).free
        with tempfile.TemporaryFile(dir=folder) as file:
            if free >= needed:  # on a full disk the first write to a mapped page would kill the process
                return np.memmap(file, dtype, mode="w+", shape=shape)
    except OSError as error:
        raise UserError(f"evaluate.scratch={folder}: cannot be written ({error.strerror})") from None
    raise UserError(f"evaluate.scratch={folder}: {needed / 1e9:.1f} GB are needed, {free / 1e9:.1f} GB are free")


def narrowed(state: Tensor, width: int) -> Tensor:
    """[N, width] at the beginning of the memory of a wider state, whose rows it overwrites.

    A row's place ends before the next rows of the wider state begin: a pass from the first row to the last may read the
    one and write the other.
    """
    return state.view(-1)[: len(state) * width].view(len(state), width)
