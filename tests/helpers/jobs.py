"""Starts commands as a user would, with all the processes that they start, and waits for them, never for ever."""

import contextlib
import io
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

BIN = Path(sys.executable).parent
REPOSITORY = Path(__file__).parents[2]
LIMIT_SECONDS = 180


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    def only_error(self) -> str:
        """The one line on stderr; fails where there is more, or nothing."""
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        return lines[0]


class Job(subprocess.Popen[str]):
    """A command and all processes that it starts, which inherit a variable of its environment."""

    def __init__(self, command: Sequence[str], cwd: Path | None, environment: Mapping[str, str]) -> None:
        number = str(time.time_ns())
        self.marker = f"LLCG_TEST_JOB={number}".encode()
        # To files, not pipes: a job must not wait for a test that is not reading.
        out, err = tempfile.TemporaryFile("w+"), tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed with the job
        self.outputs = out, err
        env, nothing = {**environment, "LLCG_TEST_JOB": number}, subprocess.DEVNULL
        super().__init__(command, stdin=nothing, stdout=out, stderr=err, text=True, env=env, cwd=cwd)


def start(command: Sequence[str], cwd: Path | None = None, inherited: Mapping[str, str] = os.environ) -> Job:
    return Job(command, cwd, {**inherited, "PATH": f"{BIN}:{os.environ['PATH']}"})


def start_llcg(*arguments: str, cwd: Path | None = None) -> Job:
    return start([str(BIN / "llcg"), *arguments], cwd)


def llcg(*arguments: str, cwd: Path | None = None) -> Outcome:
    """The command as a user runs it; fails where it leaves a process behind."""
    return finish(start_llcg(*arguments, cwd=cwd))


def llcg_in_process(*arguments: str, cwd: Path) -> Outcome:
    """The same without a process of its own, where starting one is not the point: it takes seconds to import torch."""
    from llcg_dist.cli.main import run

    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(cwd), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(arguments)
    return Outcome(code, out.getvalue(), err.getvalue())


def torchrun(num_processes: int, *arguments: str, cwd: Path | None = None) -> Outcome:
    command = [str(BIN / "torchrun"), "--standalone", f"--nproc-per-node={num_processes}", *arguments]
    return finish(start(command, cwd))


def printed(job: Job) -> tuple[str, str]:
    """What it has written to stdout and to stderr."""
    contents = []
    for file in job.outputs:
        file.seek(0)
        contents.append(file.read())
    return contents[0], contents[1]


def kill_all(job: Job) -> None:
    """All its processes, from one moment to the next."""
    job.kill()
    for pid in members(job):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    job.wait()


def finish(job: Job, limit: float = LIMIT_SECONDS) -> Outcome:
    try:
        job.wait(timeout=limit)
    except subprocess.TimeoutExpired:
        kill_all(job)
        raise AssertionError(f"the job did not end within {limit} s\n{printed(job)}") from None
    left = wait_until_gone(job)
    assert not left, f"processes left behind: {left}"
    return Outcome(job.returncode, *printed(job))


def wait_until_gone(job: Job, limit: float = 10) -> list[int]:
    """The processes of the job that are still alive after `limit` seconds."""
    end = time.monotonic() + limit
    while members(job) and time.monotonic() < end:
        time.sleep(0.1)
    return members(job)


def wait_until(condition: Callable[[], bool], *jobs: Job, limit: float = 120, interval: float = 0.05) -> None:
    """Fails where a job ends before, or where it takes longer than `limit` seconds."""
    end = time.monotonic() + limit
    while not condition():
        assert all(job.poll() is None for job in jobs), f"a job ended early: {[printed(job) for job in jobs]}"
        assert time.monotonic() < end, f"not within {limit} s: {[printed(job) for job in jobs]}"
        time.sleep(interval)


def wait_for_rounds(run_dir: Path, count: int, *jobs: Job, limit: float = 120, interval: float = 0.05) -> None:
    """Until so many rounds are recorded."""
    metrics = run_dir / "metrics.jsonl"
    wait_until(
        lambda: metrics.exists() and metrics.read_bytes().count(b"\n") >= count, *jobs, limit=limit, interval=interval
    )


def members(job: Job) -> list[int]:
    """Living processes of the job but the first, found by their environment: they may sit in sessions of their own."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == job.pid:
            continue
        with contextlib.suppress(OSError):
            if is_alive(int(folder.name)) and job.marker in folder.joinpath("environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
    return found


def ranks_of(*jobs: Job) -> dict[int, int]:
    """{rank: process} of the jobs' living ranks."""
    found = {}
    for pid in (pid for job in jobs for pid in members(job)):
        with contextlib.suppress(OSError):  # it may end meanwhile
            rank = rank_of(pid)
            if rank is not None:
                found[rank] = pid
    return found


def is_alive(pid: int) -> bool:
    """Running or stopped; a process that has ended but was not waited for yet is not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def started_at(pid: int) -> str:
    """When a process was started: its number may be used again."""
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19]


def rank_of(pid: int) -> int | None:
    for entry in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
        if entry.startswith(b"RANK="):
            return int(entry[5:])
    return None
