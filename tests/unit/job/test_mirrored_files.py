"""The server's checkpoints in two folders: either will do, and one that fails does not hurt the other."""

import shutil
from pathlib import Path

import pytest

from llcg_dist.job.checkpoint import SERVER_OWNER, CheckpointFiles
from llcg_dist.job.mirrored_files import MirroredFiles
from llcg_dist.records.mirror import RecordsMirror


def mirrored(folder: Path) -> MirroredFiles:
    return MirroredFiles(folder / "own", folder / "mirror", SERVER_OWNER, RecordsMirror(folder / "mirror"))


def rounds(folder: Path) -> list[int]:
    return CheckpointFiles(folder, SERVER_OWNER).rounds()


def test_both_folders_have_the_same(tmp_path: Path) -> None:
    files = mirrored(tmp_path)
    for round_ in (1, 2, 3):
        files.write(round_, b"state %d" % round_)
    files.prune(3, keep=2)
    assert rounds(tmp_path / "own") == rounds(tmp_path / "mirror") == [2, 3]
    files.set_aside_after(2)
    assert rounds(tmp_path / "own") == rounds(tmp_path / "mirror") == [2]
    files.remove_all()
    assert not list(tmp_path.glob("*/server*"))


@pytest.mark.parametrize("lost", ["own", "mirror"])
def test_either_folder_may_be_lost(tmp_path: Path, lost: str) -> None:
    files = mirrored(tmp_path)
    for round_ in (1, 2):
        files.write(round_, b"state %d" % round_)
    shutil.rmtree(tmp_path / lost)
    assert mirrored(tmp_path).rounds() == [1, 2]
    assert mirrored(tmp_path).read(2) == b"state 2"
    assert rounds(tmp_path / "own") == ([2] if lost == "own" else [1, 2])  # the folder has its copy back


def test_the_newest_intact_of_either(tmp_path: Path) -> None:
    files = mirrored(tmp_path)
    files.write(1, b"state 1")
    files.write(2, b"state 2")
    (newest,) = (tmp_path / "own").glob("server-r000002-*")
    newest.write_bytes(b"torn")
    assert files.rounds() == [1, 2]
    assert files.read(2) == b"state 2"


def test_a_mirror_that_fails_is_told_once_and_tried_again(tmp_path: Path) -> None:
    (tmp_path / "mirror").write_text("in the way")
    files = mirrored(tmp_path)
    for round_ in (1, 2):
        files.write(round_, b"state")
        files.prune(round_, keep=2)
    (warning,) = files.take_warning()
    assert warning.startswith(f"checkpoint.mirror={tmp_path}/mirror: not written (")
    assert files.take_warning() == []
    (tmp_path / "mirror").unlink()
    files.write(3, b"state")
    assert rounds(tmp_path / "mirror") == [3]
    assert rounds(tmp_path / "own") == [1, 2, 3]


def test_a_folder_that_fails_does_not_keep_the_mirror_from_being_written(tmp_path: Path) -> None:
    (tmp_path / "own").write_text("in the way")
    with pytest.raises(OSError, match="exists"):
        mirrored(tmp_path).write(1, b"state")
    assert rounds(tmp_path / "mirror") == [1]
