"""Starts real jobs and waits for them, never for ever."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

BIN = Path(sys.executable).parent
REPOSITORY = Path(__file__).parents[2]
LIMIT = 180


@dataclass
class Outcome:
    code: int
    out: str
    err: str


def llcg(*arguments: str, cwd: Path | None = None) -> Outcome:
    """The command as a user runs it; fails where it leaves a process behind."""
    process = start_llcg(*arguments, cwd=cwd)
    return finish(process)


def start_llcg(*arguments: str, cwd: Path | None = None) -> subprocess.Popen[str]:
    return start([str(BIN / "llcg"), *arguments], cwd)


def start(
    command: list[str], cwd: Path | None = None, inherited: dict[str, str] | None = None
) -> subprocess.Popen[str]:
    path = f"{BIN}:{os.environ['PATH']}"
    environment = (inherited or dict(os.environ)) | {"PATH": path, "LLCG_TEST_JOB": str(time.time_ns())}
    # To files, not pipes: a job must not wait for a test that is not reading.
    out, err = tempfile.TemporaryFile("w+"), tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed with the process
    process = subprocess.Popen(command, stdout=out, stderr=err, text=True, env=environment, cwd=cwd)
    process.marker, process.printed = environment["LLCG_TEST_JOB"], (out, err)  # type: ignore[attr-defined]
    return process


def printed(process: subprocess.Popen[str]) -> tuple[str, str]:
    contents = []
    for file in process.printed:  # type: ignore[attr-defined]
        file.seek(0)
        contents.append(file.read())
    return contents[0], contents[1]


def finish(process: subprocess.Popen[str], limit: float = LIMIT) -> Outcome:
    try:
        process.wait(timeout=limit)
    except subprocess.TimeoutExpired:
        for pid in members(process):
            os.kill(pid, signal.SIGKILL)
        process.kill()
        process.wait()
        raise AssertionError(f"the job did not end within {limit} s\n{printed(process)}") from None
    left = wait_until_gone(process)
    assert not left, f"processes left behind: {left}"
    return Outcome(process.returncode, *printed(process))


def wait_until_gone(process: subprocess.Popen[str], limit: float = 10) -> list[int]:
    end = time.monotonic() + limit
    while members(process) and time.monotonic() < end:
        time.sleep(0.1)
    return members(process)


def members(process: subprocess.Popen[str]) -> list[int]:
    """Living processes of the job, found by a variable in their environment: they may sit in sessions of their own."""
    marker = f"LLCG_TEST_JOB={process.marker}".encode()  # type: ignore[attr-defined]
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == process.pid:
            continue
        with contextlib.suppress(OSError):
            if is_alive(int(folder.name)) and marker in folder.joinpath("environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
    return found


def is_alive(pid: int) -> bool:
    """Running or stopped; a process that has ended but was not waited for yet is not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def rank_of(pid: int) -> int | None:
    for entry in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
        if entry.startswith(b"RANK="):
            return int(entry[5:])
    return None


def torchrun(num_processes: int, *arguments: str, cwd: Path | None = None) -> Outcome:
    command = [str(BIN / "torchrun"), "--standalone", f"--nproc-per-node={num_processes}", *arguments]
    return finish(start(command, cwd))


def rows(run_dir: Path) -> list[dict]:
    return [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]


def summary(run_dir: Path) -> dict:
    return json.loads((run_dir / "summary.json").read_text())
