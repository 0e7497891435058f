"""A job on one host can be reached from this host only."""

import os
import signal
import subprocess
import time
from pathlib import Path

from tests.helpers.jobs import finish, members, rank_of, start, start_llcg
from tests.helpers.sockets import listening

JOB = ["experiment=tiny", "num_rounds=100000", "evaluate.every=0", "cluster.max_restarts=1", "run_dir=run"]
LOOPBACK = {"127.0.0.1", "::1"}


def wait_for_start(process: subprocess.Popen[str], log: Path, starts: int) -> None:
    end = time.monotonic() + 120
    while not (log.exists() and log.read_text().count("going on after round") >= starts):
        assert process.poll() is None, finish(process)
        assert time.monotonic() < end, "the job did not start"
        time.sleep(0.1)


def listeners(process: subprocess.Popen[str]) -> list[set[str]]:
    """Of the launcher and the three ranks."""
    ranks = [pid for pid in members(process) if rank_of(pid) is not None]
    assert len(ranks) == 3
    return list(listening([process.pid, *ranks]).values())


def test_every_port_of_a_job_is_on_loopback_also_after_a_restart(tmp_path: Path) -> None:
    process = start_llcg("train", *JOB, cwd=tmp_path)
    try:
        wait_for_start(process, tmp_path / "run" / "logs" / "server.log", 1)
        before = listeners(process)
        os.kill(next(pid for pid in members(process) if rank_of(pid) == 0), signal.SIGKILL)
        wait_for_start(process, tmp_path / "run" / "logs" / "server.log", 2)
        after = listeners(process)
    finally:
        process.terminate()
        finish(process, limit=60)
    for addresses in (*before, *after):
        assert addresses  # the launcher's store, and each rank's end of Gloo
        assert addresses <= LOOPBACK


def test_what_listens_on_every_interface_is_seen() -> None:
    """The test above would be worth nothing if it could not tell."""
    code = "import socket, time; s = socket.create_server(('', 0)); print('up', flush=True); time.sleep(60)"
    process = start(["python", "-c", code])
    try:
        end = time.monotonic() + 30
        while listening([process.pid]) != {process.pid: {"0.0.0.0"}}:  # noqa: S104
            assert time.monotonic() < end
            time.sleep(0.05)
    finally:
        process.kill()
        process.wait()
