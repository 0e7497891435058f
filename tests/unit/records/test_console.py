"""The console: what the progress line adds up, over a resume too."""

from typing import Any

import pytest

from llcg_dist.config.compose import load_config
from llcg_dist.records.console import Progress, end_progress_line, print_error, say

CONFIG = load_config(["experiment=tiny", "num_rounds=4"])


def row(round_: int, val: float | None) -> dict[str, Any]:
    sent = {
        "bytes_up": 400_000,
        "bytes_down": 500_000,
        "gradient_bytes": 0,
        "feature_bytes": 0,
        "control_bytes": 100_000,
    }
    return {"round": round_, "val_score": val, "train_loss": 1.0, "warnings": [], **sent}


def test_megabytes_and_the_best_score_go_on_after_a_resume(capsys: pytest.CaptureFixture[str]) -> None:
    at_once, resumed = Progress(CONFIG), Progress(CONFIG, 2, [row(1, 0.75), row(2, None)])
    for round_, val in enumerate([0.75, None, 0.5], start=1):
        at_once.round(row(round_, val))
    undisturbed = capsys.readouterr().out.splitlines()[-1]
    resumed.round(row(3, 0.5))
    line = capsys.readouterr().out.splitlines()[-1]
    assert "val 50.00 % (best 75.00)" in line
    assert "3.00 MB" in line
    assert line.split("  ")[:4] == undisturbed.split("  ")[:4]


def test_a_new_line_begins_on_a_terminal_only(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    end_progress_line()
    assert capsys.readouterr().out == ""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    end_progress_line()
    assert capsys.readouterr().out == "\n"


def test_what_a_terminal_would_obey_is_spelled_out(capsys: pytest.CaptureFixture[str]) -> None:
    say("\x1b[31mred\x1b[0m\x1b[2J\x1b]0;title\x07\ta\nb\x9b1A")
    print_error("x\x1b[1A\rllcg: done")
    shown = capsys.readouterr()
    assert shown.out == "\x1b[31mred\x1b[0m\\x1b[2J\\x1b]0;title\\x07\ta\nb\\x9b1A\n"
    assert shown.err == "llcg: error: x\\x1b[1A llcg: done\n"


def test_who_is_lost_and_back_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress(load_config(["num_rounds=3", "cluster.num_machines=4"]))
    progress.round(row(1, 0.5) | {"absent": [1], "lost": {"1": "Connection reset by peer"}})
    progress.round(row(2, 0.5) | {"returned": [1]})
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("3 of 4 machines")
    assert lines[1] == "round 1: part 1 is lost (Connection reset by peer); the others go on"
    assert "machines" not in lines[2]
    assert lines[3] == "round 2: part 1 is back"
    progress.round(row(3, 0.5) | {"late": {"0": 3, "2": 1}})
    assert capsys.readouterr().out.splitlines()[0].endswith("late: part 0 (round 3), part 2 (round 1)")
