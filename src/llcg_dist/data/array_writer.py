"""An .npy file that is written a few rows at a time, before it is known how many there will be."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from llcg_dist.data.rows import Array


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """An OSError in the block names this file: those of a full disk name none, and NumPy's have no reason either."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or f"not all of it could be written ({error})"
        raise OSError(error.errno or errno.ENOSPC, reason, str(path)) from error


class ArrayWriter:
    """Writes the file that np.save would write of all rows together. The file is there once `finish` has returned."""

    def __init__(self, path: Path, dtype: npt.DTypeLike, row_shape: tuple[int, ...] = ()) -> None:
        self._path, self._dtype, self._row_shape = path, np.dtype(dtype), row_shape
        self._stage = path.with_name(f"{path.name}.part")
        self._length = 0
        with naming(path):
            self._file = self._stage.open("wb")
            self._write_header()
        self._header_bytes = self._file.tell()

    def __len__(self) -> int:
        return self._length

    def append(self, rows: Array) -> None:
        with naming(self._path):
            np.ascontiguousarray(rows, self._dtype).tofile(self._file)
        self._length += len(rows)

    def finish(self) -> Array:
        """Gives the file its name; returns its content, memory-mapped."""
        with naming(self._path):
            self._file.seek(0)
            self._write_header()
            assert self._file.tell() == self._header_bytes  # NumPy leaves room for the length to grow
            self._file.close()
        self._stage.replace(self._path)
        array: Array = np.load(self._path, mmap_mode="r", allow_pickle=False)
        return array

    def _write_header(self) -> None:
        shape = (self._length, *self._row_shape)
        header = {"descr": np.lib.format.dtype_to_descr(self._dtype), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(self._file, header)


def is_content_of(array: Any, path: Path) -> bool:
    """Whether an array is mapped from this file, all of it."""
    if not isinstance(array, np.memmap) or array.filename is None or not path.exists():
        return False
    whole = array.flags.c_contiguous and array.offset + array.nbytes == path.stat().st_size
    return whole and path.samefile(array.filename)
