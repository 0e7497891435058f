"""Atomic writes of files and folders: a reader sees the complete old content or the complete new one."""

import json
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from llcg_dist.data.array_writer import ArrayWriter, is_content_of, naming
from llcg_dist.data.rows import Array, row_slices
from llcg_dist.errors import UserError


@contextmanager
def staged_folder(target: Path) -> Iterator[Path]:
    """A temporary folder that is synced and renamed to `target` when the block ends without an exception.

    Leftovers of writers that were killed are removed first, so the caller must hold the lock on the target.
    """
    for leftover in target.parent.glob(f".{target.name}.tmp-*"):
        shutil.rmtree(leftover)
    stage = target.parent / f".{target.name}.tmp-{uuid.uuid4().hex[:8]}"
    stage.mkdir()
    try:
        yield stage
        for folder, _, files in os.walk(stage):
            for name in files:
                _sync(Path(folder) / name)
            _sync(Path(folder))
        stage.rename(target)
        _sync(target.parent)
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def make_folder(path: Path, setting: str) -> None:
    """Makes the folder; raises UserError that names the setting where it cannot be made or written to."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        writable = os.access(path, os.W_OK)
    except OSError as error:
        raise UserError(f"{setting}={path}: cannot make this folder ({error.strerror})") from None
    if not writable:
        raise UserError(f"{setting}={path}: this folder cannot be written to")


def write_json(path: Path, content: Any) -> None:
    """Writes `content` as JSON, atomically."""
    write_bytes(path, (json.dumps(content, indent=1) + "\n").encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Writes `content`, atomically."""
    with staged_file(path) as stage, naming(path):
        stage.write_bytes(content)


@contextmanager
def staged_file(target: Path) -> Iterator[Path]:
    """A temporary file beside `target` that is synced and renamed to it when the block ends without an exception."""
    stage = target.with_name(f".{target.name}.tmp")
    try:
        yield stage
        with naming(target):
            _sync(stage)
            stage.replace(target)
    except BaseException:
        stage.unlink(missing_ok=True)
        raise


def save_array(path: Path, array: Array, dtype: npt.DTypeLike | None = None) -> None:
    """Writes the .npy file that np.save would, in chunks of rows: the array may be larger than memory, or lazy.

    An array that is mapped from this very file is there already; one of another file of this name may be replaced.
    """
    saved_dtype = np.dtype(dtype or array.dtype)
    if saved_dtype == array.dtype and is_content_of(array, path):
        return
    writer = ArrayWriter(path, saved_dtype, array.shape[1:])
    for rows in row_slices(array):
        writer.append(array[rows])
    writer.finish()


def _sync(path: Path) -> None:
    """fsync of a file or a folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
