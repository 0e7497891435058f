"""Files and folders are written whole or not at all."""

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from llcg_dist.data import atomic_files, store
from llcg_dist.errors import UserError
from tests.helpers.graphs import community_graph

GRAPH = community_graph(30)


def test_an_array_can_be_saved_in_another_type(tmp_path: Path) -> None:
    store.save_array(tmp_path / "x.npy", GRAPH.indices, np.int64)
    np.save(tmp_path / "y.npy", GRAPH.indices.astype(np.int64))
    assert (tmp_path / "x.npy").read_bytes() == (tmp_path / "y.npy").read_bytes()


def test_write_json_replaces_and_leaves_no_other_file(tmp_path: Path) -> None:
    for content in ({"a": 1}, {"b": [1, 2]}):
        store.write_json(tmp_path / "x.json", content)
        assert store.read_json(tmp_path / "x.json") == content
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]


def test_staged_folder_appears_when_it_is_whole(tmp_path: Path) -> None:
    target = tmp_path / "store"
    with atomic_files.staged_folder(target) as stage:
        (stage / "sub").mkdir()
        (stage / "sub" / "file").write_text("content")
        assert not target.exists()
        inode = stage.stat().st_ino
    assert (target / "sub" / "file").read_text() == "content"
    assert target.stat().st_ino == inode  # renamed in one step, not copied
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_staged_folder_leaves_nothing_after_an_error(tmp_path: Path, error: type[BaseException]) -> None:
    def fill() -> None:
        with atomic_files.staged_folder(tmp_path / "store") as stage:
            (stage / "file").write_text("half")
            raise error

    with pytest.raises(error):
        fill()
    assert list(tmp_path.iterdir()) == []


def test_a_killed_writer_leaves_no_store_and_the_next_clears_up(tmp_path: Path) -> None:
    program = """
import os, signal, sys
from pathlib import Path
from llcg_dist.data.atomic_files import staged_folder
with staged_folder(Path(sys.argv[1])) as stage:
    (stage / "manifest.json").write_text("{}")
    os.kill(os.getpid(), signal.SIGKILL)
"""
    target = tmp_path / "store"
    (tmp_path / "store-2").mkdir()  # a neighbour with a longer name
    (tmp_path / ".store-2.tmp-1").mkdir()
    killed = subprocess.run([sys.executable, "-c", program, str(target)], timeout=60)
    assert killed.returncode == -signal.SIGKILL
    assert not target.exists()
    assert len(list(tmp_path.iterdir())) == 3
    with atomic_files.staged_folder(target):
        pass
    assert {path.name for path in tmp_path.iterdir()} == {"store", "store-2", ".store-2.tmp-1"}


def test_a_killed_writer_leaves_the_old_file(tmp_path: Path) -> None:
    program = """
import os, signal, sys
from pathlib import Path
from llcg_dist.data.atomic_files import staged_file
with staged_file(Path(sys.argv[1])) as stage:
    stage.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""
    target = tmp_path / "file"
    target.write_text("whole")
    killed = subprocess.run([sys.executable, "-c", program, str(target)], timeout=60)
    assert killed.returncode == -signal.SIGKILL
    assert target.read_text() == "whole"
    with atomic_files.staged_file(target) as stage:
        stage.write_text("new")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("file", "new")]


def test_make_folder(tmp_path: Path) -> None:
    atomic_files.make_folder(tmp_path / "a" / "b", "run_dir")
    atomic_files.make_folder(tmp_path / "a" / "b", "run_dir")
    assert (tmp_path / "a" / "b").is_dir()
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(UserError, match=f"^run_dir={path}: "):
            atomic_files.make_folder(path, "run_dir")
