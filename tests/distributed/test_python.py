"""llcg_dist.fit with real processes: the bits of the command line, and an interrupt that leaves nothing behind."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest
import torch

import llcg_dist
from tests.helpers.graphs import community_graph
from tests.helpers.jobs import BIN, REPOSITORY, finish, start, wait_for_rounds
from tests.helpers.own_data import data_of
from tests.helpers.own_method import CoordinateMedian

DATA = data_of(community_graph(120))
QUICK = {"model.hidden": 8, "algorithm.K": 2, "partition": "random", "logger": "none"}

INTERRUPTED = """
import signal
import llcg_dist
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests run in a shell's background
from tests.helpers.own_data import load
overrides = {"model.hidden": 8, "algorithm.K": 1, "partition": "random", "logger": "none"}
llcg_dist.fit(load(), machines=2, rounds=100000, run_dir="run", overrides=overrides)
"""


def test_the_same_bits_as_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A graph in memory and a class here; a file and a path there. Machines import the class in both."""
    monkeypatch.chdir(tmp_path)
    arguments: dict[str, Any] = {"algorithm": CoordinateMedian, "machines": 2, "rounds": 3, "run_dir": "here"}
    run = llcg_dist.fit(DATA, overrides=QUICK, **arguments)
    shown = capfd.readouterr().out
    assert "round 3/3" in shown
    assert "records in here" in shown
    assert len(list((run.path / "logs").glob("part*.log"))) == 2
    torch.save(DATA, "data.pt")
    settings = [f"{key}={value}" for key, value in QUICK.items()]
    method = ["algorithm=own", "algorithm.target=tests.helpers.own_method.CoordinateMedian"]
    job = ["dataset=pyg", "dataset.path=data.pt", "cluster.num_machines=2", "num_rounds=3", "run_dir=there"]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    outcome = finish(start([str(BIN / "llcg"), "train", *job, *method, *settings], tmp_path, environment))
    assert outcome.code == 0, outcome.err
    for name in ("model.pt", "best.pt"):
        assert (run.path / name).read_bytes() == (tmp_path / "there" / name).read_bytes()
    assert run.predict().equals(llcg_dist.load("there").predict())


@pytest.mark.alone
def test_an_interrupt_ends_the_job_so_that_it_can_go_on(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(INTERRUPTED)
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    job = start([str(BIN / "python"), "program.py"], tmp_path, environment)
    wait_for_rounds(tmp_path / "run", 2, job)
    job.send_signal(signal.SIGINT)
    outcome = finish(job)  # fails where a process is left
    assert "KeyboardInterrupt" in outcome.err
    assert "llcg: error: stopped by SIGINT; go on with: llcg train" in outcome.err
    assert list((tmp_path / "run" / "checkpoints").iterdir())


@pytest.mark.alone
@pytest.mark.full
def test_a_killed_program_leaves_no_job_behind(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(INTERRUPTED)
    job = start([str(BIN / "python"), "program.py"], tmp_path, {**os.environ, "PYTHONPATH": str(REPOSITORY)})
    wait_for_rounds(tmp_path / "run", 1, job)
    job.kill()
    assert finish(job).code == -signal.SIGKILL
