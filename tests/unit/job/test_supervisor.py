"""The process in a rank's place: what it passes on, what it hides from the launcher, and that nothing outlives it."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from llcg_dist.job.supervisor import TICKET_VARIABLE

PROGRAM = """
import os, signal, sys, time
from pathlib import Path
from llcg_dist.job.supervisor import Supervisor, SupervisorLink

folder = Path(sys.argv[1])

def work(link: SupervisorLink) -> int:
    for signal_ in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signal_, lambda number, frame: os._exit(128 + number))
    number = link.situation.workers_before
    (folder / f"worker{number}").write_text(f"{os.getpid()} {link.situation.ticket}")
    link.joined({"prefix": "start"})
    return act(link, number)

def act(link: SupervisorLink, number: int) -> int:
    BODY

sys.exit(Supervisor(work, silence=1.5, max_returns=2).run())
"""
TRAINS = "link.trains()\n    "


def start(folder: Path, body: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", PROGRAM.replace("BODY", body), str(folder)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def outcome(folder: Path, body: str) -> tuple[int, list[str], str]:
    """The exit code, what workers there were, and what was printed."""
    process = start(folder, body)
    _, err = process.communicate(timeout=60)
    return process.returncode, sorted(path.name for path in folder.iterdir()), err


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("return 0", 0),
        ("return 2", 2),
        ("return 1", 1),  # before its rounds: the job has not begun
        ("link.serves()\n    return 1", 1),
        ("link.serves()\n    os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
        ("os.kill(os.getpid(), signal.SIGSEGV)", -signal.SIGSEGV),
    ],
)
def test_what_ends_the_job_is_passed_on(tmp_path: Path, body: str, code: int) -> None:
    assert outcome(tmp_path, body)[:2] == (code, ["worker0"])


def test_a_machine_that_dies_is_started_again_with_what_it_had_agreed_on(tmp_path: Path) -> None:
    body = f"{TRAINS}return 0 if number == 2 else os.kill(os.getpid(), signal.SIGKILL)"
    assert outcome(tmp_path, body)[:2] == (0, ["worker0", "worker1", "worker2"])
    assert (tmp_path / "worker0").read_text().endswith(" None")
    assert (tmp_path / "worker2").read_text().endswith("{'prefix': 'start'}")


@pytest.mark.parametrize(("body", "workers"), [("return 1", 3), ("return 2 if number else 1", 2)])
def test_one_that_cannot_return_stays_away_without_ending_the_others(tmp_path: Path, body: str, workers: int) -> None:
    code, found, err = outcome(tmp_path, TRAINS + body)
    assert (code, len(found)) == (0, workers)
    assert "llcg: error: this machine stays away" in err


@pytest.mark.parametrize(("body", "code", "workers"), [("return 2", 2, 1), ("return 2 if number else 1", 0, 2)])
def test_one_that_joins_a_running_job_is_a_machine_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, code: int, workers: int
) -> None:
    """A user's mistake ends it while its host joins, not later."""
    monkeypatch.setenv(TICKET_VARIABLE, '{"prefix": "given"}')
    found = outcome(tmp_path, body)
    assert (found[0], len(found[1])) == (code, workers)
    assert (tmp_path / "worker0").read_text().endswith("{'prefix': 'given'}")


def test_a_machine_without_a_sign_of_life_is_replaced(tmp_path: Path) -> None:
    body = f"{TRAINS}return 0 if number else os.kill(os.getpid(), signal.SIGSTOP)"
    assert outcome(tmp_path, body)[:2] == (0, ["worker0", "worker1"])


def test_a_server_without_a_sign_of_life_ends_the_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Machines whose server is silent begin anew and give up, one after the other, and nobody would end it. The
    launcher, which may be another host's, reads why."""
    (tmp_path / "told").mkdir()
    (tmp_path / "workers").mkdir()
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(tmp_path / "told" / "error.json"))
    code, found, err = outcome(tmp_path / "workers", "link.serves()\n    os.kill(os.getpid(), signal.SIGSTOP)")
    assert (code, found) == (1, ["worker0"])
    why = "rank 0 (server): gave no sign of life for 1.5 s (cluster.timeout=1.5)"
    assert why in err
    assert why in (tmp_path / "told" / "error.json").read_text()


def test_a_server_whose_run_is_over_may_take_its_time(tmp_path: Path) -> None:
    body = "link.serves()\n    link.leaves()\n    time.sleep(4)\n    return 0"
    assert outcome(tmp_path, body)[:2] == (0, ["worker0"])


def test_signs_of_life_keep_it(tmp_path: Path) -> None:
    body = TRAINS + "for _ in range(30):\n        time.sleep(0.1)\n        link.beat()\n    return 0"
    assert outcome(tmp_path, body)[:2] == (0, ["worker0"])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_are_passed_on(tmp_path: Path, number: signal.Signals) -> None:
    process = start(tmp_path, TRAINS + "time.sleep(60)")
    wait_for(tmp_path / "worker0")
    process.send_signal(number)
    process.communicate(timeout=30)
    assert process.returncode == 128 + number
    assert [path.name for path in tmp_path.iterdir()] == ["worker0"]


def test_one_that_has_ended_is_not_signalled(tmp_path: Path) -> None:
    """Another process may have its number while the supervisor pauses."""
    pause = "Supervisor._sleep = lambda self, seconds: (folder / 'signalled').write_text(str(self._pid))"
    program = PROGRAM.replace("BODY", f"{TRAINS}return 1").replace("sys.exit", f"{pause}\nsys.exit")
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], timeout=60)
    assert (tmp_path / "signalled").read_text() == "0"


def test_the_worker_ends_with_its_supervisor(tmp_path: Path) -> None:
    process = start(tmp_path, TRAINS + "time.sleep(60)")
    worker = wait_for(tmp_path / "worker0")
    process.kill()
    process.communicate(timeout=30)
    end = time.monotonic() + 10
    while Path(f"/proc/{worker}").exists() and time.monotonic() < end:
        time.sleep(0.05)
    assert not Path(f"/proc/{worker}").exists()


def wait_for(path: Path) -> int:
    end = time.monotonic() + 60
    while not path.exists() or not path.read_text():
        assert time.monotonic() < end
        time.sleep(0.02)
    return int(path.read_text().split()[0])
