"""Processes that take turns: a line on their input is a turn, a line on their output its end."""

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO


@contextmanager
def ended(processes: list[subprocess.Popen[str]]) -> Iterator[None]:
    """Closes the input of the processes at the end, which ends them, and kills those that go on."""
    try:
        yield
    finally:
        for process in processes:
            if process.stdin:
                process.stdin.close()
        for process in processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def write_line(pipe: IO[str] | None, line: str) -> None:
    assert pipe is not None
    pipe.write(f"{line}\n")
    pipe.flush()


def require_line(process: subprocess.Popen[str], expected: str) -> None:
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    if line != expected:
        raise SystemExit(f"{process.args!r}: said {line!r} and not {expected!r}")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for_port(address: str, tries: int = 300) -> None:
    host, port = address.split(":")
    for _ in range(tries):
        with socket.socket() as probe:
            probe.settimeout(1)
            if probe.connect_ex((host, int(port))) == 0:
                return
        time.sleep(0.1)
    raise SystemExit(f"nobody listens at {address}")
