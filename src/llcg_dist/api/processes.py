"""Training in processes of their own: `llcg train` as a child of this process, whose output is shown here.

A new interpreter, and not multiprocessing: it never runs the caller's main module again, and works from a notebook.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from llcg_dist.data.child_process import die_with_parent
from llcg_dist.errors import TrainingError, UserError
from llcg_dist.records.console import ERROR_PREFIX, say

_STOP_SECONDS = 30.0
"""How long the job may take to end after an interrupt before it is killed."""


def train_in_processes(overrides: Sequence[str]) -> None:
    """Runs `llcg train` and waits for it. Raises UserError where it ends with exit code 2, else TrainingError.

    An interrupt is passed on, so that the job ends as on the command line, and can go on.
    """
    job = subprocess.Popen(
        [sys.executable, "-m", "llcg_dist.cli.main", "train", *overrides],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        env=os.environ | {"PYTHONPATH": _import_path()},
        process_group=0,  # a terminal's interrupt reaches this process alone, which passes it on once
        preexec_fn=_end_with_parent,
    )
    assert job.stdout is not None
    assert job.stderr is not None
    errors = _Errors(job.stderr)
    with job:
        try:
            _show(job.stdout)
        except BaseException:
            _interrupt(job, job.stdout)
            errors.show_last()
            raise
        message = errors.last()
    if job.returncode == 2:
        raise UserError(message or "llcg train refused the job")
    if job.returncode != 0:
        raise TrainingError(message or f"llcg train ended with exit code {job.returncode}")


def _import_path() -> str:
    """This process's import path for the job's: what can be imported here can be imported there."""
    return os.pathsep.join(dict.fromkeys(str(Path(entry).absolute()) for entry in sys.path))


def _end_with_parent() -> None:
    """Asks the kernel to stop the job with this process, however that ends. The job hears interrupts even where this
    process was started in the background, with interrupts ignored."""
    die_with_parent(signal.SIGTERM)
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _show(lines: IO[str]) -> None:
    for line in lines:
        say(line.rstrip("\n"))


def _interrupt(job: "subprocess.Popen[str]", lines: IO[str]) -> None:
    """Interrupts the job and shows what it still says; kills it where it takes too long, or is interrupted again."""
    job.send_signal(signal.SIGINT)
    limit = threading.Timer(_STOP_SECONDS, job.kill)
    limit.start()
    try:
        _show(lines)
        job.wait()
    finally:
        limit.cancel()
        job.kill()


class _Errors:
    """A thread that shows what the job writes to stderr, but for its last error line, which an exception will say."""

    def __init__(self, lines: IO[str]) -> None:
        self._last = ""
        self._thread = threading.Thread(target=self._read, args=(lines,), daemon=True)
        self._thread.start()

    def _read(self, lines: IO[str]) -> None:
        for line in lines:
            if line.startswith(ERROR_PREFIX):
                self._write(self._last)
                self._last = line
            else:
                self._write(line)

    def _write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()

    def last(self) -> str:
        """The last error line, without what such lines begin with."""
        self._thread.join()
        return self._last.removeprefix(ERROR_PREFIX).strip()

    def show_last(self) -> None:
        self._thread.join()
        self._write(self._last)
