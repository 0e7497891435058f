"""The folder of a run: one that names none, and one that holds a run already."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from llcg_dist.config.compose import load_config, recorded_yaml
from llcg_dist.errors import UserError
from llcg_dist.job.run_dir import RunState, claim_run_dir, inspect_run_dir


def test_jobs_of_the_same_second_have_folders_of_their_own(tmp_path: Path) -> None:
    config, chosen = load_config(["experiment=tiny"]), tmp_path / "runs" / "now"
    with ThreadPoolExecutor(8) as pool:
        claimed = list(pool.map(lambda _: claim_run_dir(config, chosen), range(24)))
    assert len(set(claimed)) == 24
    assert all(folder.is_dir() for folder in claimed)
    assert {chosen, tmp_path / "runs" / "now_2"} <= set(claimed)


def test_a_folder_that_is_named_is_the_one(tmp_path: Path) -> None:
    config = load_config(["experiment=tiny", f"run_dir={tmp_path}"])
    assert claim_run_dir(config, tmp_path) == tmp_path


def test_a_place_that_takes_no_folder(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file")
    with pytest.raises(UserError, match=f"run_dir={tmp_path}/runs: cannot make this folder"):
        claim_run_dir(load_config(["experiment=tiny"]), tmp_path / "runs" / "now")


def recorded(folder: Path, *changes: tuple[str, str]) -> None:
    text = recorded_yaml(load_config(["experiment=tiny"]))
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (folder / "config.yaml").write_text(text)


LACKS_A_KEY = ("on_nonfinite: fail\n", "")


def test_a_run_of_a_version_with_fewer_settings_goes_on(tmp_path: Path) -> None:
    recorded(tmp_path, LACKS_A_KEY)
    assert inspect_run_dir(load_config(["experiment=tiny"]), tmp_path) == RunState.UNFINISHED
    with pytest.raises(UserError, match=r"other settings: on_nonfinite \(fail there, skip here\); choose"):
        inspect_run_dir(load_config(["experiment=tiny", "on_nonfinite=skip"]), tmp_path)


def test_a_setting_that_this_version_does_not_have_is_a_conflict(tmp_path: Path) -> None:
    recorded(tmp_path, ("format: 1\n", "format: 1\nmomentum: 0.9\n"))
    with pytest.raises(UserError, match=r"other settings: momentum \(0.9 there, None here\); choose"):
        inspect_run_dir(load_config(["experiment=tiny"]), tmp_path)


@pytest.mark.parametrize(
    ("changes", "refusal"),
    [
        ([("format: 1\n", "")], None),
        ([("format: 1\n", ""), LACKS_A_KEY], r"on_nonfinite \(None there, fail here\); choose another folder"),
        ([("format: 1\n", "format: 2\n")], r"format 2 is that of another version .*; choose another run_dir$"),
    ],
)
def test_runs_of_other_formats(tmp_path: Path, changes: list[tuple[str, str]], refusal: str | None) -> None:
    config = load_config(["experiment=tiny"])
    recorded(tmp_path, *changes)
    if refusal is None:
        assert inspect_run_dir(config, tmp_path) == RunState.UNFINISHED
    else:
        with pytest.raises(UserError, match=refusal):
            inspect_run_dir(config, tmp_path)
    assert inspect_run_dir(load_config(["experiment=tiny", "resume=fresh"]), tmp_path) == RunState.NEW
