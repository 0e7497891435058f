"""What is lost with a checkpoint, and that nothing else is. On loopback the same code decides as over processes."""

import os
import shutil
import signal
from pathlib import Path

import pytest
import torch

from llcg_dist.errors import UserError
from llcg_dist.records.reading import readable_rows
from llcg_dist.records.starts import read_starts
from tests.helpers.jobs import finish, ranks_of, start_llcg, wait_until
from tests.helpers.run_files import model_bytes, model_state, rows, rows_without_times, summary
from tests.helpers.stopping import checkpoint_files, lose, stopped
from tests.helpers.training import in_ranks, on_loopback

ROUNDS, STOP = 40, 20
TINY = ["experiment=tiny", "partition=random", "logger=none", f"num_rounds={ROUNDS}", "algorithm=psgd_pa"]
SGD = [*TINY, "train.optimizer=sgd", "train.local_lr=0.1"]
"""A machine of SGD without momentum has no state: to lose it must change no bit."""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Undisturbed runs, and their parts; stopped runs beside them."""
    root = tmp_path_factory.mktemp("runs")
    for name, settings in {"adam": TINY, "sgd": SGD, "int8": [*TINY, "algorithm.exchange_dtype=int8"]}.items():
        on_loopback(root, name, *settings)
        stopped(root, f"{name}_stopped", STOP, *settings)
    return root


def copy(root: Path, name: str, new: str) -> Path:
    return shutil.copytree(root / f"{name}_stopped", root / new)


def assert_goes_on(run_dir: Path, lost: list[int], out: str) -> None:
    """From the server's round, with a line and a record for every part that has lost its state."""
    assert f"going on after round {STOP}\n" in out
    assert len(rows(run_dir)) == ROUNDS
    told = [line for line in out.splitlines() if f"no intact checkpoint of round {STOP};" in line]
    assert [line[:15] for line in told] == [f"warning: part {part}" for part in lost]
    recorded = summary(run_dir)["lost"]
    assert [(entry["part"], entry["round"]) for entry in recorded] == [(part, STOP) for part in lost]
    assert read_starts(run_dir)[-1]["lost"] == recorded
    assert rows(run_dir)[STOP]["checkpoint_lost"] == recorded


def test_a_part_that_has_lost_its_folder_loses_nothing_else(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_dir = copy(root, "sgd", "folder")
    lose(run_dir, "part1")
    capsys.readouterr()
    on_loopback(root, "folder", *SGD)
    assert_goes_on(run_dir, [1], out := capsys.readouterr().out)
    assert "lost: nothing that training needs" in out
    assert model_bytes(run_dir) == model_bytes(root / "sgd")
    assert rows_without_times(run_dir) == rows_without_times(root / "sgd")


def test_only_its_own_moments_are_lost(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_dir = copy(root, "adam", "moments")
    lose(run_dir, "part1")
    capsys.readouterr()
    on_loopback(root, "moments", *TINY)
    assert_goes_on(run_dir, [1], out := capsys.readouterr().out)
    assert "lost: the optimiser's state (adam);" in out
    assert rows_without_times(run_dir)[:STOP] == rows_without_times(root / "adam")[:STOP]
    assert model_bytes(run_dir) != model_bytes(root / "adam")
    all_lost = copy(root, "adam", "all_moments")
    for part in (0, 1):
        lose(all_lost, f"part{part}")
    on_loopback(root, "all_moments", *TINY)
    assert model_bytes(all_lost) != model_bytes(run_dir)  # so that part 0 had kept its own


@pytest.mark.parametrize("damaged", ["newest", "all"])
def test_damaged_files(root: Path, capsys: pytest.CaptureFixture[str], damaged: str) -> None:
    """An older one that all have is exact; without one the machine goes on without its state."""
    run_dir = copy(root, "adam", f"damaged_{damaged}")
    files = checkpoint_files(run_dir, "part0")
    for path in files if damaged == "all" else files[-1:]:
        path.write_bytes(path.read_bytes()[:-1])
    capsys.readouterr()
    on_loopback(root, run_dir.name, *TINY)
    if damaged == "all":
        assert_goes_on(run_dir, [0], capsys.readouterr().out)
    else:
        assert f"going on after round {STOP - 1}\n" in capsys.readouterr().out
        assert model_bytes(run_dir) == model_bytes(root / "adam")
        assert summary(run_dir)["lost"] == []


def test_what_machines_hold_of_a_rounded_model_comes_from_the_server(root: Path) -> None:
    """Differences are sent: a machine that began with nothing would be far off. Only its residual is lost."""
    settings = [*TINY, "algorithm.exchange_dtype=int8"]
    run_dir = copy(root, "int8", "residual")
    lose(run_dir, "part0")
    on_loopback(root, "residual", *settings)
    (lost,) = summary(run_dir)["lost"]
    assert "what rounding to int8 kept back" in lost["state"]
    far = max(
        float((mine - theirs).abs().max())
        for mine, theirs in zip(model_state(run_dir).values(), model_state(root / "int8").values(), strict=True)
    )
    assert 0 < far < 0.5
    assert [row["bytes_down"] for row in rows(run_dir)] == [row["bytes_down"] for row in rows(root / "int8")]


def test_a_machine_that_takes_shared_steps_gets_its_moments_from_the_server(tmp_path: Path) -> None:
    settings = ["experiment=tiny", "partition=random", "logger=none", "num_rounds=8", "algorithm=full_sync"]
    intact, run_dir = (stopped(tmp_path, name, 5, *settings) for name in ("intact", "lost"))
    lose(run_dir, "part1")
    for name in ("intact", "lost"):
        on_loopback(tmp_path, name, *settings)
    assert [entry["state"] for entry in summary(run_dir)["lost"]] == [["BatchNorm's running statistics"]]
    of_lost, of_intact = model_state(run_dir), model_state(intact)
    learned = [name for name in of_intact if "running" not in name]
    assert len(learned) < len(of_intact)
    assert all(torch.equal(of_lost[name], of_intact[name]) for name in learned)


def test_stopped_again_after_a_loss_it_ends_with_the_same_bits(root: Path) -> None:
    """The machine has saved the state that it went on with: the second start loses nothing."""
    once, twice = copy(root, "adam", "lost_once"), copy(root, "adam", "lost_twice")
    for run_dir in (once, twice):
        lose(run_dir, "part1")
    on_loopback(root, "lost_once", *TINY)
    stopped(root, "lost_twice", STOP, *TINY)  # before a round is saved
    stopped(root, "lost_twice", STOP + 2, *TINY)
    on_loopback(root, "lost_twice", *TINY)
    assert len(read_starts(twice)) == 4
    assert [entry["part"] for entry in summary(twice)["lost"]] == [1]
    assert model_bytes(twice) == model_bytes(once)


def test_checkpoints_are_removed_when_told_alone(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A server that has lost its own refuses to start over; resume=fresh does, and has the bits of a new run."""
    run_dir = copy(root, "adam", "server_lost")
    lose(run_dir, "server")
    kept = checkpoint_files(run_dir, "part0") + checkpoint_files(run_dir, "part1")
    for resume in ("auto", "must"):
        with pytest.raises(UserError, match=r"at round 20, and the server's checkpoints are gone .*resume=fresh"):
            on_loopback(root, "server_lost", *TINY, f"resume={resume}")
    assert len(rows(run_dir)) == STOP
    assert checkpoint_files(run_dir, "part0") + checkpoint_files(run_dir, "part1") == kept
    stopped(root, "server_lost", 3, *TINY, "resume=fresh")
    assert not any(path.exists() for path in kept)
    assert len(rows(run_dir)) == 3
    on_loopback(root, "server_lost", *TINY)
    assert "going on after round 3\n" in capsys.readouterr().out
    assert model_bytes(run_dir) == model_bytes(root / "adam")
    stopped(root, "server_lost", 2, *TINY, "resume=fresh", "seed=1")  # of a finished run too, with other settings
    assert not (run_dir / "summary.json").exists()


def test_a_server_one_round_back_keeps_what_is_newer_until_it_is_made_again(root: Path) -> None:
    run_dir = copy(root, "adam", "behind")
    (newest,) = checkpoint_files(run_dir, "server")[-1:]
    newest.write_bytes(newest.read_bytes()[:100])
    parts = checkpoint_files(run_dir, "part0")
    stopped(root, "behind", STOP - 1, *TINY)
    assert (run_dir / "checkpoints" / f"{parts[-1].name}.aside").exists()
    on_loopback(root, "behind", *TINY)
    assert not list((run_dir / "checkpoints").glob("*.aside"))
    assert model_bytes(run_dir) == model_bytes(root / "adam")


@pytest.mark.parametrize("lost", ["server", "all"])
def test_a_disk_is_lost_and_the_mirror_goes_on(root: Path, capsys: pytest.CaptureFixture[str], lost: str) -> None:
    """The server's, where machines have disks of their own and no mirror; or the one disk of all."""
    mirror = root / f"mirror_{lost}"
    places = [f"checkpoint.mirror={mirror}"] + ([f"checkpoint.dir={root}/disk"] if lost == "server" else [])
    run_dir = stopped(root, f"mirrored_{lost}", STOP, *TINY, *places)
    shutil.rmtree(run_dir)
    if lost == "server":
        for path in [*(root / "disk").glob("server-*"), *mirror.glob("part*")]:
            path.unlink()
    capsys.readouterr()
    on_loopback(root, run_dir.name, *TINY, *places, "resume=must")
    out = capsys.readouterr().out
    assert f"going on after round {STOP}\n" in out
    assert f"restored from checkpoint.mirror={mirror}" in out
    assert "metrics.jsonl" in read_starts(run_dir)[-1]["restored"]
    assert summary(run_dir)["lost"] == []
    assert model_bytes(run_dir) == model_bytes(root / "adam")
    assert (run_dir / "best.pt").read_bytes() == (root / "adam" / "best.pt").read_bytes()
    assert rows_without_times(run_dir) == rows_without_times(root / "adam")
    assert (run_dir / "classes.json").read_bytes() == (root / "adam" / "classes.json").read_bytes()
    with pytest.raises(UserError, match=rf"^checkpoint.mirror={mirror}: holds a run with other settings: seed"):
        on_loopback(root, "other", *TINY, f"checkpoint.mirror={mirror}", "seed=1")


def test_without_a_mirror_a_lost_disk_is_told(root: Path) -> None:
    run_dir = stopped(root, "bare", 5, *TINY, f"checkpoint.dir={root}/bare_disk")
    shutil.rmtree(run_dir)
    for path in (root / "bare_disk").glob("server-*"):
        path.unlink()
    with pytest.raises(UserError, match=r"^run_dir=.*/bare: .*the server's checkpoints are gone .* resume=fresh$"):
        on_loopback(root, "bare", *TINY, f"checkpoint.dir={root}/bare_disk")


def test_a_mirror_that_cannot_be_written_is_told_once(root: Path) -> None:
    (root / "file").write_text("in the way")
    run_dir = on_loopback(root, "no_mirror", *TINY, f"checkpoint.mirror={root}/file/mirror")
    told = [text for row in rows(run_dir) for text in row["warnings"] if "checkpoint.mirror" in text]
    assert len(told) == 1
    assert model_bytes(run_dir) == model_bytes(root / "adam")


def test_processes_do_the_same(root: Path) -> None:
    """A part's folder on a disk of its own is lost; a server's whole disk is lost, and its mirror is not."""
    copy(root, "sgd", "in_ranks_sgd")
    lose(root / "in_ranks_sgd", "part1")
    copy(root, "int8", "in_ranks_int8")
    lose(root / "in_ranks_int8", "part0")
    copy(root, "int8", "on_loopback_int8")
    lose(root / "on_loopback_int8", "part0")
    mirrored = [*TINY, f"checkpoint.mirror={root}/mirror_ranks", f"checkpoint.dir={root}/disk_ranks"]
    shutil.rmtree(stopped(root, "in_ranks_adam", STOP, *mirrored))
    for path in (root / "disk_ranks").glob("server-*"):
        path.unlink()
    settings = [*TINY, "algorithm.exchange_dtype=int8"]
    jobs = {"in_ranks_sgd": SGD, "in_ranks_int8": settings, "in_ranks_adam": mirrored}
    in_ranks(root, {name: [*job, "cluster.audit=true"] for name, job in jobs.items()})
    on_loopback(root, "on_loopback_int8", *settings)
    assert model_bytes(root / "in_ranks_sgd") == model_bytes(root / "sgd")
    assert model_bytes(root / "in_ranks_adam") == model_bytes(root / "adam")
    assert rows_without_times(root / "in_ranks_adam") == rows_without_times(root / "adam")
    assert model_bytes(root / "in_ranks_int8") == model_bytes(root / "on_loopback_int8")
    assert [entry["part"] for entry in summary(root / "in_ranks_int8")["lost"]] == [0]


@pytest.mark.alone
def test_a_rank_of_a_fresh_start_dies_and_the_job_goes_on(root: Path, tmp_path: Path) -> None:
    """resume=fresh is for the first start of a launch; and what is then printed to go on with is not fresh."""
    settings = [*TINY, f"partition.root={root}/parts", f"run_dir={tmp_path}/run", "num_rounds=3000", "resume=fresh"]
    shutil.copytree(root / "adam", tmp_path / "run")
    job = start_llcg("train", *settings, "cluster.max_restarts=1")
    wait_until(lambda: 5 <= len(readable_rows(tmp_path / "run")) < ROUNDS, job, interval=0.01)  # not the old rows
    os.kill(ranks_of(job)[1], signal.SIGKILL)
    wait_until(lambda: len(read_starts(tmp_path / "run")) == 2, job)
    job.terminate()
    outcome = finish(job)
    assert [start["after_round"] > 0 for start in read_starts(tmp_path / "run")] == [False, True]
    assert "resume=fresh" not in outcome.only_error()
