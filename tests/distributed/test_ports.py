"""A job on one host can be reached from this host only."""

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.helpers.jobs import Job, finish, ranks_of, start, start_llcg, wait_until
from tests.helpers.sockets import listening

JOB = ["experiment=tiny", "num_rounds=100000", "evaluate.every=0", "cluster.max_restarts=1", "run_dir=run"]
LOOPBACK = {"127.0.0.1", "::1"}


def wait_for_start(job: Job, log: Path, starts: int) -> None:
    wait_until(lambda: log.exists() and log.read_text().count("going on after round") >= starts, job)


def listeners(job: Job) -> list[set[str]]:
    """Of the launcher and the three ranks."""
    ranks = ranks_of(job)
    assert sorted(ranks) == [0, 1, 2]
    return list(listening([job.pid, *ranks.values()]).values())


@pytest.mark.alone
def test_every_port_of_a_job_is_on_loopback_also_after_a_restart(tmp_path: Path) -> None:
    job = start_llcg("train", *JOB, cwd=tmp_path)
    try:
        wait_for_start(job, tmp_path / "run" / "logs" / "server.log", 1)
        before = listeners(job)
        os.kill(ranks_of(job)[0], signal.SIGKILL)
        wait_for_start(job, tmp_path / "run" / "logs" / "server.log", 2)
        after = listeners(job)
    finally:
        job.terminate()
        finish(job, limit=60)
    assert len(before) == len(after) == 4
    for addresses in (*before, *after):
        assert addresses  # the launcher's store, and each rank's end of Gloo
        assert addresses <= LOOPBACK


def test_what_listens_on_every_interface_is_seen() -> None:
    """The test above would be worth nothing if it could not tell."""
    code = "import socket, time; s = socket.create_server(('', 0)); print('up', flush=True); time.sleep(60)"
    job = start([sys.executable, "-c", code])
    try:
        wait_until(lambda: listening([job.pid]) == {job.pid: {"0.0.0.0"}}, job, limit=30)  # noqa: S104
    finally:
        job.kill()
        job.wait()
