"""A rank whose main thread is stuck while its heartbeat beats: named, and the job ends, whatever holds it."""

import os
import time
from pathlib import Path

import pytest

from tests.helpers.jobs import BIN, REPOSITORY, Outcome, finish, llcg, start

LIMIT = 8.0
CALLS = {0: 0, 2: 6}
"""Calls of the model that still return, by rank: a round has four steps, and is evaluated while the next one trains."""


def own_model(tmp_path: Path, rank: int, *more: str, **options: bool) -> Outcome:
    """A job of a server and two machines whose model misbehaves at one of them."""
    model = ["model=own", "model.target=tests.helpers.own_models.Stuck", "model.layers=1", "algorithm=llcg"]
    given = {"rank": rank, "calls": CALLS[rank], **options}
    rounds = ["num_rounds=6", "algorithm.K=4"]
    settings = [f"model.options.{key}={str(value).lower()}" for key, value in given.items()]
    places = [f"partition.root={tmp_path}/parts", f"run_dir={tmp_path}/run", f"cluster.stall_timeout={LIMIT}"]
    job = start(
        [str(BIN / "llcg"), "train", "experiment=tiny", *rounds, *model, *settings, *places, *more], cwd=REPOSITORY
    )
    return finish(job, limit=400)


GO_ON = "cluster.on_loss=go_on"
STUCK = [
    (0, False, ["evaluate.process=off"]),
    *(
        pytest.param(*stuck, marks=pytest.mark.full)
        for stuck in [
            (2, True, []),
            (0, True, ["evaluate.process=on"]),
            (0, False, ["evaluate.process=off", GO_ON]),
            (0, True, ["evaluate.process=off", GO_ON, "cluster.timeout=10"]),
        ]
    ),
]


@pytest.mark.alone
@pytest.mark.parametrize(("rank", "in_c", "more"), STUCK)
def test_a_stuck_rank_is_named_and_the_job_ends(tmp_path: Path, rank: int, in_c: bool, more: list[str]) -> None:
    """A machine in round 2 of its steps, and the server in an evaluation, which may be in a process of its own: then
    the server goes on until it has to wait for it. Before there was this limit the others waited without end."""
    started = time.monotonic()
    outcome = own_model(tmp_path, rank, *more, in_c=in_c)
    assert outcome.code == 1
    error = outcome.only_error()
    name = "rank 0 (server) at round " if rank == 0 else "rank 2 (part 1) at round 2, unit "
    assert f"alive, but not moving on: {name}" in error
    assert f"(cluster.stall_timeout={LIMIT:g})" in error
    assert time.monotonic() - started < 120


@pytest.mark.parametrize("rank", [pytest.param(0, marks=pytest.mark.full), 2])
def test_an_exception_is_one_line_with_rank_and_part(tmp_path: Path, rank: int) -> None:
    outcome = own_model(tmp_path, rank, raises=True)
    assert outcome.code == 1
    error = outcome.only_error()
    name, log = ("rank 0 (server)", "server.log") if rank == 0 else ("rank 2 (part 1)", "part1.log")
    assert error.startswith(f"llcg: error: {name}: ")
    assert "RuntimeError: the sky is falling" in error
    assert "in _misbehave" in (tmp_path / "run" / "logs" / log).read_text()


@pytest.mark.full
@pytest.mark.alone
def test_a_disk_that_does_not_answer(tmp_path: Path) -> None:
    """A pipe that nobody reads takes the place of a machine's checkpoint: opening it does not return."""
    (tmp_path / "checkpoints").mkdir()
    os.mkfifo(tmp_path / "checkpoints" / ".part1.tmp")
    places = [f"partition.root={tmp_path}/parts", f"run_dir={tmp_path}/run", f"checkpoint.dir={tmp_path}/checkpoints"]
    outcome = llcg("train", "experiment=tiny", "num_rounds=6", *places, f"cluster.stall_timeout={LIMIT}")
    assert outcome.code == 1
    assert "alive, but not moving on: rank 2 (part 1) at round 2" in outcome.only_error()
