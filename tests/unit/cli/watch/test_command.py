"""llcg watch: plain lines into a pipe, panels on a terminal, and an end when the run has one."""

import json
import os
import platform
import pty
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from llcg_dist.cli.main import run as llcg
from llcg_dist.cli.watch import command
from llcg_dist.job.run_dir import RunLock
from tests.helpers.run_records import ROW, write_run


def started(folder: Path) -> Path:
    """The first of three rounds is done."""
    run = write_run(folder, [0.5], settings={"num_rounds": 3}, row={"seconds_local_by_part": [0.1, 0.4]})
    (run / "summary.json").unlink()
    return run


def go_on(run: Path) -> None:
    """The two rounds that are left, and the summary."""
    for round_, score in ((2, 0.6), (3, 0.7)):
        time.sleep(0.2)
        row = {"round": round_, "val_score": score, "test_score": score, "train_loss": 0.5} | ROW
        with (run / "metrics.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")
    time.sleep(0.2)
    (run / "summary.json").write_text(json.dumps({"num_rounds": 3}))


def test_once_into_a_pipe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert llcg(["watch", str(started(tmp_path / "a")), "--once"]) == 0
    said = capsys.readouterr().out
    assert "round 1/3, val 50.00 %, best 50.00 % (round 1), 1.52 MB" in said
    assert "s left" in said
    assert "seconds a round: local 0.500, exchange 0.100, correct 0.200, evaluate 0.300" in said
    assert "slow: part 1 takes 4.0 times as long as the median part" in said
    assert "\x1b" not in said


def test_a_pipe_gets_a_line_for_each_round_until_the_run_is_finished(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = started(tmp_path / "a")
    others = threading.Thread(target=go_on, args=[run])
    others.start()
    assert llcg(["watch", str(run), "--every=0.02"]) == 0
    others.join()
    said = capsys.readouterr().out.splitlines()
    assert [line.split(",")[0] for line in said[:3]] == ["round 1/3", "round 2/3", "round 3/3"]
    assert any(line.endswith("finished") for line in said)


def test_the_view_ends_where_the_run_was_stopped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """But not at once: it may be on its way again."""
    monkeypatch.setattr(command, "RESTART_SECONDS", 0.5)
    run = started(tmp_path / "a")
    (run / "starts.json").write_text(json.dumps([{"command": "llcg train", "host": platform.node()}]))
    begun = time.monotonic()
    assert llcg(["watch", str(run), "--every=0.02"]) == 1
    assert time.monotonic() - begun > 0.5
    assert f"no process works on it: go on with: llcg train run_dir={run}" in capsys.readouterr().out
    with RunLock(run):
        others = threading.Thread(target=go_on, args=[run])
        others.start()
        assert llcg(["watch", str(run), "--every=0.02"]) == 0
    others.join()


def test_a_terminal_gets_panels_and_its_prompt_back(tmp_path: Path) -> None:
    """In a real terminal (a pty), while the run goes on."""
    run = started(tmp_path / "a")
    terminal, end = pty.openpty()
    command = [sys.executable, "-m", "llcg_dist.cli.main", "watch", str(run), "--every=0.05"]
    environment = os.environ | {"COLUMNS": "100", "LINES": "40", "TERM": "xterm"}
    process = subprocess.Popen(command, stdout=end, stderr=end, env=environment)
    os.close(end)
    others = threading.Thread(target=go_on, args=[run])
    others.start()
    shown = b""
    try:
        while chunk := os.read(terminal, 65536):
            shown += chunk
    except OSError:  # the other end is closed
        pass
    others.join()
    assert process.wait(timeout=60) == 0
    text = shown.decode()
    assert "validation score (%): 70" in text
    assert "local seconds" in text
    assert "finished" in text
    assert text.count("validation score") > 1  # drawn anew


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        ([], "watch: name one run directory"),
        (["a", "b"], "watch: name one run directory"),
        (["nowhere"], "watch: nowhere is not a folder"),
        (["nowhere", "--twice"], "watch: --twice: the options are --once and --every=SECONDS"),
        (["nowhere", "--every=soon"], "watch: --every=soon: must be a number of seconds"),
        (["nowhere", "--every=nan"], "watch: --every=nan: must be a number of seconds"),
    ],
)
def test_commands_that_cannot_work(arguments: list[str], rule: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert llcg(["watch", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"llcg: error: {rule}")
    assert error.count("\n") == 1


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert llcg(["watch", "--help"]) == 0
    assert capsys.readouterr().out.startswith("usage: llcg watch RUN")


def test_watching_loads_no_torch(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a", [0.5], num_rounds=1)
    program = (
        "import sys; from llcg_dist.cli.main import run; code = run(sys.argv[1:]);"
        " print([m for m in ('torch', 'dgl', 'matplotlib') if m in sys.modules], code)"
    )
    command = [sys.executable, "-c", program, "watch", str(run), "--once"]
    found = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert found.stdout.splitlines()[-1] == "[] 0", found.stderr
