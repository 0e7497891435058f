"""Starts real jobs and waits for them, never for ever."""

import json
import os
import signal
import subprocess
import sys
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


def start(command: list[str], cwd: Path | None = None) -> subprocess.Popen[str]:
    path = f"{BIN}:{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "LLCG_TEST_JOB": str(time.time_ns())}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=cwd
    )
    process.marker = environment["LLCG_TEST_JOB"]  # type: ignore[attr-defined]
    return process


def finish(process: subprocess.Popen[str], limit: float = LIMIT) -> Outcome:
    try:
        out, err = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        for pid in members(process):
            os.kill(pid, signal.SIGKILL)
        process.kill()
        out, err = process.communicate()
        raise AssertionError(f"the job did not end within {limit} s\n{out}\n{err}") from None
    left = wait_until_gone(process)
    assert not left, f"processes left behind: {left}"
    return Outcome(process.returncode, out, err)


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
        try:
            alive = folder.joinpath("stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
            if alive and marker in folder.joinpath("environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except (OSError, IndexError):
            continue
    return found


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
