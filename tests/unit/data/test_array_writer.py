"""Files that are written a few rows at a time are those that np.save writes at once."""

from pathlib import Path

import numpy as np
import pytest

from llcg_dist.data.array_writer import ArrayWriter, is_content_of
from llcg_dist.data.atomic_files import save_array


@pytest.mark.parametrize("shape", [(0,), (7,), (1000,), (5, 3), (0, 3)])
def test_the_bytes_of_np_save(tmp_path: Path, shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)
    writer = ArrayWriter(tmp_path / "pieces.npy", np.float32, shape[1:])
    for start in range(0, len(array), 2):
        writer.append(array[start : start + 2].astype(np.float64))
    assert not (tmp_path / "pieces.npy").exists()  # cut short, it is no array
    assert np.array_equal(writer.finish(), array)
    np.save(tmp_path / "whole.npy", array)
    assert (tmp_path / "pieces.npy").read_bytes() == (tmp_path / "whole.npy").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pieces.npy", "whole.npy"]


def test_what_is_mapped_from_a_file_is_not_written_again(tmp_path: Path) -> None:
    path = tmp_path / "array.npy"
    np.save(path, np.arange(10))
    mapped, before = np.load(path, mmap_mode="r"), path.stat().st_ino
    assert is_content_of(mapped, path)
    assert not is_content_of(mapped[2:], path)
    assert not is_content_of(np.arange(10), path)
    save_array(path, mapped)
    assert path.stat().st_ino == before
    save_array(path, mapped[2:])  # reads the file that it replaces
    assert np.load(path).tolist() == list(range(2, 10))
    assert mapped.tolist() == list(range(10))
    save_array(path, np.load(path, mmap_mode="r"), np.int32)
    assert np.load(path).dtype == np.int32
