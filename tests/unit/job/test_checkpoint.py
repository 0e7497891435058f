"""A checkpoint that is there is complete; one that is torn or altered is as if it were not there."""

import io
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from llcg_dist.config.run_format import RUN_FORMAT
from llcg_dist.errors import UserError
from llcg_dist.job.checkpoint import SERVER_OWNER, CheckpointFiles, CheckpointWriter, part_owner, parts_with_checkpoints


def state(round_: int) -> dict[str, Any]:
    return {"theta": torch.full((4,), float(round_)), "round": round_}


def saved(folder: Path, *rounds: int, owner: str = SERVER_OWNER, every: int = 1, last: int = 100) -> CheckpointWriter:
    saver = CheckpointWriter(CheckpointFiles(folder, owner), every, keep=2, last_round=last)
    for round_ in rounds:
        saver.save(round_, partial(state, round_))
    saver.finish()
    return saver


def test_round_trip(tmp_path: Path) -> None:
    saver = saved(tmp_path / "checkpoints", 1, 2)
    files = CheckpointFiles(tmp_path / "checkpoints", SERVER_OWNER)
    assert files.rounds() == [1, 2]
    assert files.load(2)["theta"].tolist() == [2.0] * 4
    assert files.load(1)["round"] == 1
    assert (saver.durable_round, saver.problem) == (2, None)
    assert saver.bytes == max(path.stat().st_size for path in (tmp_path / "checkpoints").iterdir())


def test_what_a_gpu_saved_is_loaded_where_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("torch.serialization.location_tag", lambda storage: "cuda:3")  # as if it were there
        saved(tmp_path, 1)
    assert CheckpointFiles(tmp_path, SERVER_OWNER).load(1)["theta"].tolist() == [1.0] * 4


def test_parts_with_checkpoints_are_told_by_their_names(tmp_path: Path) -> None:
    assert parts_with_checkpoints(tmp_path / "nowhere") == []
    for owner in (SERVER_OWNER, part_owner(1), part_owner(11), part_owner(1)):
        saved(tmp_path, 1, 2, owner=owner)
    (tmp_path / ".part7.tmp").write_text("being written")
    (tmp_path / "party-r000001-x.pt").write_text("not ours")
    assert parts_with_checkpoints(tmp_path) == [1, 11]


def test_owners_do_not_meet(tmp_path: Path) -> None:
    for owner in (SERVER_OWNER, part_owner(1), part_owner(11)):
        saved(tmp_path, 1, owner=owner)
    saved(tmp_path, 2, owner=part_owner(1))
    assert CheckpointFiles(tmp_path, part_owner(1)).rounds() == [1, 2]
    assert CheckpointFiles(tmp_path, part_owner(11)).rounds() == [1]
    CheckpointFiles(tmp_path, part_owner(1)).remove_all()
    assert CheckpointFiles(tmp_path, part_owner(11)).rounds() == [1]
    assert CheckpointFiles(tmp_path, SERVER_OWNER).rounds() == [1]


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    "damage", [flip, lambda path: path.write_bytes(path.read_bytes()[:-1]), lambda path: path.write_bytes(b"")]
)
def test_damaged_files_are_passed_over(tmp_path: Path, damage: Callable[[Path], Any]) -> None:
    saved(tmp_path, 1, 2)
    files = CheckpointFiles(tmp_path, SERVER_OWNER)
    (newest,) = tmp_path.glob("server-r000002-*.pt")
    damage(newest)
    assert files.rounds() == [1]
    with pytest.raises(UserError, match=f"^{tmp_path}: .* round 2 "):
        files.load(2)


def test_other_files_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "server-r000003-0123.pt").write_text("")
    (tmp_path / ".server.tmp").write_text("half")
    (tmp_path / "notes.txt").write_text("")
    assert CheckpointFiles(tmp_path, SERVER_OWNER).rounds() == []
    assert CheckpointFiles(tmp_path / "nowhere", SERVER_OWNER).rounds() == []


@pytest.mark.parametrize(("every", "expected"), [(0, []), (1, [1, 2, 3, 4, 5]), (2, [2, 4, 5]), (9, [5])])
def test_every_nth_round_and_the_last(tmp_path: Path, every: int, expected: list[int]) -> None:
    saved(tmp_path, 1, 2, 3, 4, 5, every=every, last=5)
    assert CheckpointFiles(tmp_path, SERVER_OWNER).rounds() == expected


@pytest.mark.parametrize(
    ("common_round", "left"), [(0, [1, 2, 3, 4]), (1, [1, 2, 3, 4]), (2, [2, 3, 4]), (3, [3, 4]), (9, [3, 4])]
)
def test_what_a_restart_may_need_is_kept(tmp_path: Path, common_round: int, left: list[int]) -> None:
    """The two newest, and besides them the newest that all ranks have with every one after it."""
    saver = saved(tmp_path, 1, 2, 3, 4)
    saver.prune(common_round)
    saver.finish()
    assert CheckpointFiles(tmp_path, SERVER_OWNER).rounds() == left


def test_the_end_of_a_job_leaves_what_keep_says(tmp_path: Path) -> None:
    """Until it is known that all ranks have the last round, the one before stays besides."""
    CheckpointWriter.forget_all()
    writer = CheckpointWriter(CheckpointFiles(tmp_path, SERVER_OWNER), every=1, keep=1, last_round=3)
    for round_ in (1, 2, 3):
        writer.save(round_, partial(state, round_))
    for known, left in ((2, [2, 3]), (3, [3])):
        CheckpointWriter.prune_all(known)
        assert CheckpointFiles(tmp_path, SERVER_OWNER).rounds() == left
    assert CheckpointWriter.saved_by_all() == 3


def test_rounds_that_will_be_repeated_are_set_aside_until_every_rank_has_them_again(tmp_path: Path) -> None:
    saved(tmp_path, 1, 2, 3)
    files = CheckpointFiles(tmp_path, SERVER_OWNER)
    files.set_aside_after(2)
    assert files.rounds() == [1, 2]
    (aside,) = tmp_path.glob("*.aside")
    assert aside.name.startswith("server-r000003-")
    files.prune(2, keep=2)
    assert aside.exists()
    files.prune(3, keep=2)
    assert not aside.exists()
    assert files.rounds() == [1, 2]


def test_starting_over_removes_all_of_one_owner(tmp_path: Path) -> None:
    saved(tmp_path, 1, 2)
    saved(tmp_path, 1, owner=part_owner(0))
    files = CheckpointFiles(tmp_path, SERVER_OWNER)
    files.set_aside_after(1)
    files.remove_all()
    assert [path.name[:5] for path in tmp_path.iterdir()] == ["part0"]


def test_a_disk_that_cannot_be_written_is_told_and_training_goes_on(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    saver = saved(tmp_path / "file", 1)
    assert saver.durable_round == 0
    assert "round 1" in str(saver.problem)


def test_the_state_is_that_of_the_moment(tmp_path: Path) -> None:
    """What training changes while the disk is busy does not get into the file."""
    theta = torch.zeros(1000)
    saver = CheckpointWriter(CheckpointFiles(tmp_path, SERVER_OWNER), 1, 2, 10)
    saver.save(1, lambda: {"theta": theta})
    theta += 1
    CheckpointWriter.finish_all()
    assert CheckpointFiles(tmp_path, SERVER_OWNER).load(1)["theta"].sum().item() == 0


def test_only_plain_data_is_loaded(tmp_path: Path) -> None:
    """No pickle that could run code, even with a name that matches its content."""
    saver = CheckpointWriter(CheckpointFiles(tmp_path, SERVER_OWNER), 1, 2, 10)
    saver.save(1, lambda: {"theta": Path("code")})
    saver.finish()
    with pytest.raises(UserError, match=r"checkpoint of server for round 1: not a checkpoint \(UnpicklingError\)"):
        CheckpointFiles(tmp_path, SERVER_OWNER).load(1)


@pytest.mark.parametrize(("number", "known"), [({}, True), ({"format": 1}, True), ({"format": 2}, False)])
def test_the_format_of_a_checkpoint(tmp_path: Path, number: dict[str, int], known: bool) -> None:
    """Without a number it is older than 1.0, and read as ever."""
    files, buffer = CheckpointFiles(tmp_path, SERVER_OWNER), io.BytesIO()
    torch.save(number | {"round": 1}, buffer)
    files.write(1, buffer.getvalue())
    if known:
        assert files.load(1) == {"round": 1}
    else:
        with pytest.raises(UserError, match="checkpoint of server for round 1: format 2 is that of another version"):
            files.load(1)


def test_a_checkpoint_has_the_number_of_its_format(tmp_path: Path) -> None:
    saved(tmp_path, 1)
    (path,) = tmp_path.glob("server-r000001-*.pt")
    assert torch.load(path, weights_only=True)["format"] == RUN_FORMAT
    assert "format" not in CheckpointFiles(tmp_path, SERVER_OWNER).load(1)


def test_what_a_checkpoint_counts_on_is_on_the_disk_before_it(tmp_path: Path) -> None:
    saver = CheckpointWriter(CheckpointFiles(tmp_path, SERVER_OWNER), 1, 2, 10)
    seen: list[list[str]] = []
    saver.save(1, lambda: {"theta": torch.zeros(1)}, before=lambda: seen.append(os.listdir(tmp_path)))
    saver.finish()
    assert seen == [[]]
    assert saver.durable_round == 1
