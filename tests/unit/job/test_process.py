"""How a rank hears of signals: wherever they meet it, also in the moment in which it ends."""

import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from llcg_dist import train
from llcg_dist.job import failure_file, process
from llcg_dist.job.process import Stopped, install_signal_handlers


def ended(code: str) -> tuple[int, str, float]:
    """Exit code, stderr and seconds of a process that runs this code after it has installed the handlers."""
    before = (
        "import os, signal, sys, time\nfrom llcg_dist.job.process import *\nfrom llcg_dist.job.process import Stopped\n"
    )
    started = time.monotonic()
    command = [sys.executable, "-c", before + textwrap.dedent(code)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return run.returncode, run.stderr, time.monotonic() - started


LOST = """
    class Ends:
        def __del__(self):
            os.kill(os.getpid(), signal.{name})
            sum(range(1000))

    install_signal_handlers()
    try:
        Ends()
        time.sleep(20)
    except {caught} as stopped:
        ignore_signals()
        sys.exit({code})
"""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_signal_that_meets_a_destructor_is_not_lost(name: str) -> None:
    code, err, seconds = ended(LOST.format(name=name, caught="Stopped", code="128 + stopped.signal"))
    assert (code, err) == (128 + getattr(signal, name), "")
    assert seconds < 15


def test_other_errors_of_a_destructor_are_still_shown() -> None:
    code, err, _ = ended(
        """
        class Ends:
            def __del__(self):
                raise ValueError("of its own")

        install_signal_handlers()
        Ends()
        """
    )
    assert code == 0
    assert "ValueError: of its own" in err


def test_a_signal_just_after_the_last_moment_of_a_job_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes when the work is done and the signals are about to be ignored."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)}

    def meets_a_signal() -> None:
        process.ignore_signals()
        raise Stopped(signal.SIGTERM)

    monkeypatch.setattr(train, "_explained", lambda me, action: 0)
    monkeypatch.setattr(train, "ignore_signals", meets_a_signal)
    try:
        assert train.main([]) == 143
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        sys.unraisablehook = sys.__unraisablehook__


def test_handlers_raise_in_the_main_thread() -> None:
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)}
    try:
        install_signal_handlers()
        with pytest.raises(Stopped) as stopped:
            signal.raise_signal(signal.SIGINT)
        assert stopped.value.signal == signal.SIGINT
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        sys.unraisablehook = sys.__unraisablehook__


def test_a_lost_rank_is_named_with_its_part() -> None:
    me = process.Rank()
    me.names = {1: "rank 1 (part 1)", 12: "rank 12 (part 0)"}
    message = "lost the connection to rank 12: closed; rank 1 (part 1), rank 3 and rank 1"
    expected = "lost the connection to rank 12 (part 0): closed; rank 1 (part 1), rank 3 and rank 1 (part 1)"
    assert me.with_parts(message) == expected


def test_a_full_disk_leaves_no_half_of_a_message(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """torchrun's agent reads the file where it is there, and fails where it is empty."""
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(tmp_path / "error.json"))
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        patch.setattr(Path, "write_text", full)
        assert failure_file.fail("a reason", 1) == 1
    assert list(tmp_path.iterdir()) == []
    failure_file.fail("a reason", 1)
    assert "a reason" in (tmp_path / "error.json").read_text()


def full(path: Path, content: bytes | str) -> int:
    path.touch()
    raise OSError(28, "No space left on device")


def test_a_main_thread_that_hears_nothing_is_left_behind() -> None:
    """It is stuck in the C library, where no signal wakes it: the process ends without it."""
    code, err, seconds = ended(
        """
        import ctypes, threading
        from llcg_dist.job import process
        process._REACTION_SECONDS = 1.0
        install_signal_handlers()
        threading.Timer(0.5, lambda: process.interrupt("rank 2 is gone", Rank())).start()
        mutex = ctypes.create_string_buffer(64)
        for _ in range(2):
            ctypes.CDLL(None).pthread_mutex_lock(mutex)
        """
    )
    assert (code, err) == (1, "llcg: error: rank 0 (server): rank 2 is gone\n")
    assert seconds < 50


def test_a_rank_that_says_why_it_ends_is_not_stopped_before_it_has_told_the_launcher(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = list[object]()

    def fail(message: str, exit_code: int) -> int:
        found.append(signal.getsignal(signal.SIGTERM))
        return exit_code

    monkeypatch.setattr(train, "fail", fail)
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)}
    try:
        assert train._fail(process.Rank(), "a reason", 1) == 1
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert found == [signal.SIG_IGN]
