"""A rank as an operating-system process: its name, its log, how it hears of signals, and how it ends."""

import logging
import os
import re
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Protocol

from llcg_dist.data.child_process import die_with_parent
from llcg_dist.errors import PeerTimeoutError, UserError, os_error_line
from llcg_dist.job.failure_file import fail
from llcg_dist.job.supervisor import SupervisorLink

log = logging.getLogger(__name__)

_silence_messages: list[str] = []
_main_thread_heard = threading.Event()
_REACTION_SECONDS = 30.0
"""How long the main thread may take to hear that the job has failed before its process ends without it."""


class FailureBoard(Protocol):
    """Where ranks tell each other why a job ends: the job's store."""

    def record_failure(self, message: str) -> None: ...

    def wait_for_failure(self, seconds: float) -> str | None:
        """What another rank recorded, as soon as it is there."""


class Rank:
    """Who this process is, for its messages; the part is known after the handshake."""

    def __init__(self, supervisor: SupervisorLink | None = None) -> None:
        self.rank = int(os.environ.get("RANK", 0))
        self.supervisor = supervisor or SupervisorLink()
        self.part: int | None = None
        self._board: FailureBoard | None = None
        self._replaceable = False
        self.names: dict[int, str] = {}
        """Of the other ranks, with their parts, once these are known."""

    def joined(self, rank: int, board: FailureBoard) -> None:
        """The ranks have found each other, and numbered themselves."""
        self.rank, self._board = rank, board

    def is_replaceable(self) -> None:
        """From here on this rank's end is not the job's: it is nobody's reason to end."""
        self.supervisor.trains()
        self._replaceable = True

    def record_failure(self, message: str) -> None:
        if self._board and not self._replaceable:
            self._board.record_failure(message)

    def failure_of_another(self, seconds: float) -> str | None:
        """Why the job ends, where another rank says so within the time."""
        return self._board.wait_for_failure(seconds) if self._board else None

    def with_parts(self, message: str) -> str:
        """The message with the parts of the ranks that it names."""
        return re.sub(r"\brank (\d+)(?! \()", lambda found: self.names.get(int(found[1]), found[0]), message)

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
        _main_thread_heard.set()
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


def log_thread_failures() -> None:
    """What ends a library's thread goes to the log, not to the terminal: TensorBoard's ends where a disk is full."""
    threading.excepthook = lambda ended: log.warning(
        "a thread has ended", exc_info=(ended.exc_type, ended.exc_value or ended.exc_type(), ended.exc_traceback)
    )


def ignore_signals() -> None:
    signal.setitimer(signal.ITIMER_REAL, 0)
    for signal_ in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
        signal.signal(signal_, signal.SIG_IGN)


def interrupt(message: str, me: Rank) -> None:
    """Called from the heartbeat's thread: raises PeerTimeoutError in the main thread, whatever it waits for. Where that
    is stuck itself, in a library that returns to no Python, the process ends without it.

    By a real signal: what `_thread.interrupt_main` simulates would not wake it from waiting for a lock.
    """
    _silence_messages.append(message)
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)
    end = time.monotonic() + _REACTION_SECONDS
    while not _main_thread_heard.wait(1.0):
        me.supervisor.beat()  # which would take it for silent, and kill it before it has said why
        if time.monotonic() > end:
            told = f"{me}: {message}"
            code = fail(told, exit_code=1)
            me.record_failure(told)
            os._exit(code)


def die_with_launcher() -> None:
    """torchrun starts ranks in sessions of their own, where they would outlive a killed launcher."""
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        return
    launcher = os.getppid()
    die_with_parent()
    if os.getppid() != launcher:  # it died before we asked
        os._exit(1)


class LogFile(logging.FileHandler):
    """A log that goes on with what it can write: a disk that is full must not fill the terminal."""

    def handleError(self, record: logging.LogRecord) -> None: ...  # noqa: N802 - logging's name


def log_file() -> str | None:
    """The path of this process's log; None before there is one."""
    files = (handler for handler in logging.getLogger("llcg_dist").handlers if isinstance(handler, LogFile))
    return next((handler.baseFilename for handler in files), None)


def log_to(path: Path) -> None:
    """From here on the package's log goes to this file; raises UserError where it cannot be made."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handler = LogFile(path)
    except OSError as error:
        raise UserError(f"run_dir: the log cannot be written: {os_error_line(error)}") from None
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger("llcg_dist")
    for earlier in list(root.handlers):  # of an earlier job in the same process
        root.removeHandler(earlier)
        earlier.close()
    root.addHandler(handler)
    root.setLevel(logging.INFO)
