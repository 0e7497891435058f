"""The folder of a run: one that names none, and one that holds a run already."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from llcg_dist.config.compose import load_config, recorded_yaml
from llcg_dist.errors import UserError
from llcg_dist.job import run_dir
from llcg_dist.job.run_dir import RunLock, RunState, claim_run_dir, inspect_run_dir, remove_if_nothing_recorded


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


def test_a_refused_job_leaves_no_folder(tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    (run_dir / "logs").mkdir(parents=True)
    (run_dir / "config.yaml").write_text("")
    remove_if_nothing_recorded(run_dir)
    assert not run_dir.exists()
    remove_if_nothing_recorded(run_dir)  # nor was there one


@pytest.mark.parametrize("file", ["metrics.jsonl", "checkpoints/server-000003.pt"])
def test_a_job_that_is_refused_after_rounds_keeps_them(tmp_path: Path, file: str) -> None:
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / file).write_text('{"round": 1, "val_score": 0.5, "test_score": null, "train_loss": 1.0}\n')
    remove_if_nothing_recorded(tmp_path)
    assert (tmp_path / file).exists()


def test_the_folder_of_another_job_that_has_just_begun_stays(tmp_path: Path) -> None:
    with RunLock(tmp_path):
        remove_if_nothing_recorded(tmp_path)
        assert tmp_path.exists()
    remove_if_nothing_recorded(tmp_path)
    assert not tmp_path.exists()


def test_a_job_that_waits_for_another_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run_dir, "_OLD_JOB_WAIT_SECONDS", 0.5)
    monkeypatch.setattr(run_dir, "_TELL_AFTER_SECONDS", 0.2)
    with RunLock(tmp_path), pytest.raises(UserError, match="another job is running in it"):
        RunLock(tmp_path)
    assert capsys.readouterr().out.count(f"waiting for another job that is running in {tmp_path}") == 1


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


@pytest.mark.parametrize("content", ["a: 1\n", "dataset: cora\nlr: 0.1\n", "dataset: {source: moon}\n"])
def test_another_programs_config_yaml(tmp_path: Path, content: str) -> None:
    (tmp_path / "config.yaml").write_text(content)
    rule = "is not the config.yaml of a run of llcg_dist; choose another run_dir"
    with pytest.raises(UserError, match=f"^{tmp_path}/config.yaml: {rule}$"):
        inspect_run_dir(load_config(["experiment=tiny"]), tmp_path)
