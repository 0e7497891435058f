"""Exact resume where no crash is needed: on loopback, where the same code decides from which round to go on."""

import contextlib
import shutil
from pathlib import Path

import pytest

from llcg_dist.cli import main
from llcg_dist.errors import UserError
from tests.helpers.disks import small_disk
from tests.helpers.resuming import JOB, ROUNDS, assert_undisturbed
from tests.helpers.run_files import model_bytes, rows, rows_without_times, summary
from tests.helpers.training import on_loopback, train_in_process

TINY = ["experiment=tiny"]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return on_loopback(tmp_path_factory.mktemp("undisturbed"), "run", *JOB)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_longer_run_goes_on_where_the_shorter_ended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], precision: str
) -> None:
    settings = [*TINY, "algorithm=psgd_pa", f"train.precision={precision}"]
    on_loopback(tmp_path, "grown", *settings, "num_rounds=7")
    grown = on_loopback(tmp_path, "grown", *settings, "num_rounds=12")
    assert "going on after round 7\n" in capsys.readouterr().out
    at_once = on_loopback(tmp_path, "at_once", *settings, "num_rounds=12")
    assert model_bytes(grown) == model_bytes(at_once)
    assert rows_without_times(grown) == rows_without_times(at_once)
    assert summary(grown)["total_bytes"] == summary(at_once)["total_bytes"]
    assert (grown / "classes.json").read_bytes() == (at_once / "classes.json").read_bytes()


@pytest.mark.parametrize("keep", [1, 2])
def test_a_finished_run_leaves_as_many_checkpoints_as_it_was_told(tmp_path: Path, keep: int) -> None:
    run = on_loopback(tmp_path, "run", *TINY, "num_rounds=4", f"checkpoint.keep={keep}", "cluster.num_machines=2")
    names = [path.name.rpartition("-")[0] for path in (run / "checkpoints").iterdir()]
    rounds = range(5 - keep, 5)
    assert sorted(names) == [f"{owner}-r{round_:06d}" for owner in ("part0", "part1", "server") for round_ in rounds]


def test_other_settings_are_refused_with_the_keys_that_differ(tmp_path: Path) -> None:
    run = on_loopback(tmp_path, "run", *TINY)
    before = model_bytes(run)
    for changed, named in (
        ("algorithm.K=5", r"algorithm\.K \(2\.0 there, 5\.0 here\)"),
        ("num_rounds=2", "num_rounds"),
        ("train.precision=bfloat16", r"train\.precision"),
    ):
        with pytest.raises(UserError, match=named):
            on_loopback(tmp_path, "run", *TINY, changed)
    on_loopback(tmp_path, "run", *TINY, "cluster.threads=1", "cluster.timeout=7")  # where and how it runs may change
    assert model_bytes(run) == before
    with pytest.raises(UserError, match="resume=never"):
        on_loopback(tmp_path, "run", *TINY, "resume=never")
    with pytest.raises(UserError, match="resume=must"):
        on_loopback(tmp_path, "new", *TINY, "resume=must")


def test_a_run_of_a_version_without_a_setting_goes_on(
    undisturbed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A setting that config.yaml does not have yet has its default, and the run ends with the same bits."""
    run_dir = shutil.copytree(undisturbed, tmp_path / "run")
    shutil.copytree(undisturbed.parent / "parts", tmp_path / "parts")
    for path in (run_dir / "summary.json", run_dir / "model.pt", *run_dir.glob(f"checkpoints/*-r{ROUNDS:06d}-*")):
        path.unlink()
    settings = (run_dir / "config.yaml").read_text()
    fewer = settings.replace("on_nonfinite: fail\n", "").replace("  aggregate: mean\n", "")
    assert len(fewer.splitlines()) == len(settings.splitlines()) - 2
    (run_dir / "config.yaml").write_text(fewer)
    on_loopback(tmp_path, "run", *JOB, "resume=must")
    assert f"going on after round {ROUNDS - 1}\n" in capsys.readouterr().out
    assert_undisturbed(run_dir, undisturbed)
    assert "on_nonfinite: fail\n" in (run_dir / "config.yaml").read_text()


@pytest.mark.parametrize("file", ["config.yaml", "checkpoint"])
def test_a_run_of_an_unknown_format_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str) -> None:
    if file == "checkpoint":
        monkeypatch.setattr("llcg_dist.job.checkpoint.stamped", lambda state: {"format": 7} | state)
    run_dir = on_loopback(tmp_path, "run", *TINY)
    if file == "config.yaml":
        (run_dir / file).write_text((run_dir / file).read_text().replace("format: 1\n", "format: 7\n"))
    before = {path: path.read_bytes() for path in run_dir.rglob("*") if path.is_file() and path.parent.name != "logs"}
    with pytest.raises(UserError, match="format 7 is that of another version of llcg_dist"):
        on_loopback(tmp_path, "run", *TINY, "num_rounds=9")
    places = [f"partition.root={tmp_path}/parts", f"run_dir={run_dir}"]
    assert main.run(["train", *TINY, *places, "num_rounds=9", "cluster.backend=loopback"]) == 2
    assert {path: path.read_bytes() for path in before} == before


def test_torn_checkpoints_are_passed_over(
    undisturbed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_dir = shutil.copytree(undisturbed, tmp_path / "run")
    shutil.copytree(undisturbed.parent / "parts", tmp_path / "parts")
    classes = (run_dir / "classes.json").read_bytes()
    for name in ("summary.json", "model.pt", "classes.json"):
        (run_dir / name).unlink()
    for path in (run_dir / "checkpoints").glob(f"*-r{ROUNDS:06d}-*"):
        path.write_bytes(path.read_bytes()[:-1])
    on_loopback(tmp_path, "run", *JOB)
    assert f"going on after round {ROUNDS - 1}\n" in capsys.readouterr().out
    assert_undisturbed(run_dir, undisturbed)
    assert (run_dir / "classes.json").read_bytes() == classes  # by the best model, which an earlier start has saved


@pytest.mark.parametrize("keep", [2, 3])
def test_as_many_checkpoints_stay_as_are_kept(tmp_path: Path, keep: int) -> None:
    run = on_loopback(tmp_path, "run", *TINY, "num_rounds=7", f"checkpoint.keep={keep}")
    files = sorted(path.name.rpartition("-")[0] for path in (run / "checkpoints").iterdir())
    rounds = range(8 - keep, 8)
    assert files == [f"{owner}-r{round_:06d}" for owner in ("part0", "part1", "server") for round_ in rounds]


def test_a_full_disk_costs_checkpoints_not_the_run(undisturbed: Path, tmp_path: Path) -> None:
    shutil.copytree(undisturbed.parent / "parts", tmp_path / "parts")
    with small_disk(tmp_path / "disk", 64) as disk:
        run_dir = on_loopback(tmp_path, "run", *JOB, f"checkpoint.dir={disk}")
        assert_undisturbed(run_dir, undisturbed)
        told = [row for row in rows(run_dir) if any("No space left on device" in text for text in row["warnings"])]
        assert told
        assert 0 < rows(run_dir)[-1]["checkpoint_round"] < ROUNDS
        for name in ("summary.json", "model.pt"):
            (run_dir / name).unlink()
        on_loopback(tmp_path, "run", *JOB, f"checkpoint.dir={disk}", "resume=must")
        assert_undisturbed(run_dir, undisturbed)


def fill(disk: Path) -> None:
    with (disk / "filler").open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(1024))


def test_a_run_that_cannot_write_its_result_fails_and_keeps_the_old_one(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 256) as disk:
        settings = [*TINY, "checkpoint.keep=1"]
        run_dir = disk / "run"
        places = [f"partition.root={tmp_path}/parts", f"run_dir={run_dir}"]
        train_in_process(*settings, *places)
        before = model_bytes(run_dir), summary(run_dir)
        fill(disk)
        with pytest.raises(OSError, match="No space"):
            train_in_process(*settings, *places, "num_rounds=9")
        assert (model_bytes(run_dir), summary(run_dir)) == before
