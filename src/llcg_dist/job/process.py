"""A rank as an operating-system process: its name, its log, how it hears of signals, and how it ends."""

import ctypes
import json
import logging
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Protocol

from llcg_dist.errors import PeerTimeoutError
from llcg_dist.job.forked_process import die_with_parent
from llcg_dist.records.console import print_error

_silence_messages: list[str] = []


class FailureBoard(Protocol):
    """Where ranks tell each other why a job ends: the job's store."""

    def record_failure(self, message: str) -> None: ...

    def wait_for_failure(self, seconds: float) -> str | None:
        """What another rank recorded, as soon as it is there."""


class Rank:
    """Who this process is, for its messages; the part is known after the handshake."""

    def __init__(self) -> None:
        self.rank = int(os.environ.get("RANK", 0))
        self.part: int | None = None
        self._board: FailureBoard | None = None

    def joined(self, rank: int, board: FailureBoard) -> None:
        """The ranks have found each other, and numbered themselves."""
        self.rank, self._board = rank, board

    def record_failure(self, message: str) -> None:
        if self._board:
            self._board.record_failure(message)

    def failure_of_another(self, seconds: float) -> str | None:
        """Why the job ends, where another rank says so within the time."""
        return self._board.wait_for_failure(seconds) if self._board else None

    def __str__(self) -> str:
        return name_of(self.rank, self.part)


def name_of(rank: int, part: int | None) -> str:
    if rank == 0:
        return "rank 0 (server)"
    return f"rank {rank}" + ("" if part is None else f" (part {part})")


class Stopped(BaseException):  # noqa: N818 - not an error: someone asked for it
    """SIGTERM or SIGINT came; raised wherever the main thread is."""

    def __init__(self, signal_: int) -> None:
        self.signal = signal_


_RAISED_AGAIN_SECONDS = 0.05
"""How long after it was lost in a destructor a signal's exception is raised again."""


def install_signal_handlers() -> None:
    """Turns signals into exceptions of the main thread. Collectives are polled, so they come through while it waits."""

    def stop(signal_: int, frame: object) -> None:
        ignore_signals()
        raise Stopped(signal_)

    def raise_silence_error(signal_: int, frame: object) -> None:
        raise PeerTimeoutError(_silence_messages[0] if _silence_messages else "interrupted")

    raise_lost_again(Stopped, PeerTimeoutError)
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGUSR1, raise_silence_error)


def raise_lost_again(*kinds: type[BaseException]) -> None:
    """Raises a signal's exception once more where it was lost.

    One that meets a destructor or a weak reference's callback goes no further: Python prints `Exception ignored in` and
    drops it, and the process would go on as if there had been no signal.
    """

    def raise_later(unraisable: "sys.UnraisableHookArgs") -> None:
        lost = unraisable.exc_value
        if not isinstance(lost, kinds):
            sys.__unraisablehook__(unraisable)
            return

        def raise_now(signal_: int, frame: object) -> None:
            raise lost.with_traceback(None)

        signal.signal(signal.SIGALRM, raise_now)
        signal.setitimer(signal.ITIMER_REAL, _RAISED_AGAIN_SECONDS)

    sys.unraisablehook = raise_later


def ignore_signals() -> None:
    signal.setitimer(signal.ITIMER_REAL, 0)
    for signal_ in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
        signal.signal(signal_, signal.SIG_IGN)


def interrupt(message: str) -> None:
    """Called from the heartbeat's thread: raises PeerTimeoutError in the main thread, whatever it waits for.

    By a real signal: what `_thread.interrupt_main` simulates would not wake it from waiting for a lock.
    """
    _silence_messages.append(message)
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)


def die_with_launcher() -> None:
    """torchrun starts ranks in sessions of their own, where they would outlive a killed launcher."""
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        return
    launcher = os.getppid()
    die_with_parent()
    if os.getppid() != launcher:  # it died before we asked
        os._exit(1)


def keep_freed_memory() -> None:
    """A step frees its large buffers and needs them again in the next: glibc would give them back to the kernel, which
    hands them out again page by page, emptied. At most half a gigabyte is kept."""
    glibc = ctypes.CDLL(None)
    glibc.mallopt(-3, 2**28)  # M_MMAP_THRESHOLD: larger ones still come and go
    glibc.mallopt(-1, 2**29)  # M_TRIM_THRESHOLD


def fail(message: str, exit_code: int) -> int:
    """Tells the user, and the launcher through torchrun's error file."""
    print_error(message)
    error_file = os.environ.get("TORCHELASTIC_ERROR_FILE")
    if error_file:
        content = {"message": message, "extraInfo": {"timestamp": str(int(time.time()))}}
        Path(error_file).write_text(json.dumps({"message": content}))
    return exit_code


def log_to(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handler = logging.FileHandler(path)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger("llcg_dist")
    for earlier in list(root.handlers):  # of an earlier job in the same process
        root.removeHandler(earlier)
        earlier.close()
    root.addHandler(handler)
    root.setLevel(logging.INFO)
