"""What a job says is shown, and how it ends decides what is raised; the job is a script of a few lines here."""

import sys
import time
from pathlib import Path

import pytest

from llcg_dist.api.processes import train_in_processes
from llcg_dist.errors import TrainingError, UserError


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program in the place of Python."""
    program = tmp_path / "python"
    program.touch(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    return program


def test_its_output_is_shown(job: Path, capfd: pytest.CaptureFixture[str]) -> None:
    job.write_text('#!/bin/sh\necho "$@"\necho a note >&2\n')
    train_in_processes(["model='a b'", "num_rounds=2"])
    assert capfd.readouterr() == ("-m llcg_dist.cli.main train model='a b' num_rounds=2\n", "a note\n")


def test_its_import_path_is_ours(job: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", ["", "/some where", *sys.path])
    job.write_text('#!/bin/sh\necho "$PYTHONPATH"\n')
    train_in_processes([])
    shown = capfd.readouterr().out.strip().split(":")
    assert shown[:2] == [str(Path.cwd()), "/some where"]
    assert {str(Path(entry).absolute()) for entry in sys.path} == set(shown)


@pytest.mark.parametrize(
    ("code", "kind", "said", "message"),
    [
        (2, UserError, "llcg: error: seed=x: no", "seed=x: no"),
        (1, TrainingError, "llcg: error: rank 1 (part 0): lost", "rank 1 (part 0): lost"),
        (1, TrainingError, "a traceback", "llcg train ended with exit code 1"),
    ],
)
def test_a_failure_is_raised_once(
    job: Path, capfd: pytest.CaptureFixture[str], code: int, kind: type[Exception], said: str, message: str
) -> None:
    job.write_text(f'#!/bin/sh\necho "llcg: error: an earlier one" >&2; echo "{said}" >&2; exit {code}\n')
    if "llcg" not in said:
        job.write_text(f'#!/bin/sh\necho "{said}" >&2; exit {code}\n')
    with pytest.raises(kind) as raised:
        train_in_processes([])
    assert str(raised.value) == message
    assert capfd.readouterr().err == ("a traceback\n" if "llcg" not in said else "llcg: error: an earlier one\n")


def test_an_interrupt_is_passed_on(
    job: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job ends itself, and what it says then is shown."""
    said = "echo stopping; echo 'llcg: error: stopped by SIGINT' >&2; exit 130"
    job.write_text(f'#!/bin/bash\ntrap "{said}" INT\necho begun\nfor i in {{1..600}}; do sleep 0.05; done\n')

    def interrupted(line: str) -> None:
        print(line, flush=True)  # noqa: T201
        if line == "begun":
            raise KeyboardInterrupt

    monkeypatch.setattr("llcg_dist.api.processes.say", interrupted)
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        train_in_processes([])
    assert time.monotonic() - started < 10
    assert capfd.readouterr() == ("begun\nstopping\n", "llcg: error: stopped by SIGINT\n")


def test_a_job_that_does_not_stop_is_killed(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job.write_text('#!/bin/bash\ntrap "" INT\necho begun\nfor i in {1..600}; do sleep 0.05; done\n')

    def interrupted(line: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("llcg_dist.api.processes.say", interrupted)
    monkeypatch.setattr("llcg_dist.api.processes._STOP_SECONDS", 0.3)
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        train_in_processes([])
    assert time.monotonic() - started < 10
