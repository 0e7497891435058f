"""What the files of a run say at any moment."""

import json
import os
import platform
import time
from pathlib import Path
from typing import Any

import pytest

from llcg_dist.cli.watch.command import watch
from llcg_dist.cli.watch.state import read_state
from llcg_dist.cli.watch.view import status_line
from llcg_dist.errors import UserError
from llcg_dist.job.run_dir import RunLock
from tests.helpers.run_records import write_run


def running(folder: Path, row: dict[str, Any] | None = None) -> Path:
    """Three of eight rounds are done, and the fourth is being written."""
    run = write_run(folder, [0.25, 0.75, 0.5], settings={"num_rounds": 8, "cluster.num_machines": 2}, row=row)
    (run / "summary.json").unlink()
    with (run / "metrics.jsonl").open("a") as file:
        file.write('{"round": 4, "val_sc')
    return run


def test_a_run_that_goes_on(tmp_path: Path) -> None:
    state = read_state(running(tmp_path / "a"))
    assert (len(state.rows), state.planned_rounds, state.finished) == (3, 8, False)
    assert state.best is not None
    assert (state.best["round"], state.best["val_score"]) == (2, 0.75)
    assert state.megabytes() == pytest.approx(3 * 1.523128)
    assert state.seconds() == pytest.approx(2.4)
    assert state.seconds_left() == pytest.approx(5 * 0.8)
    assert state.phases() == pytest.approx({"local": 0.5, "exchange": 0.1, "correct": 0.2, "evaluate": 0.3})
    assert state.title.startswith("llcg on ")


def test_it_is_finished_with_the_summary_of_its_last_round(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a", [0.5, 0.5], num_rounds=2)
    assert read_state(run).finished
    (run / "summary.json").write_text(json.dumps({"num_rounds": 1}))  # of before it was resumed with more rounds
    assert not read_state(run).finished
    (run / "summary.json").write_text("{")
    assert not read_state(run).finished


def test_who_is_slow(tmp_path: Path) -> None:
    assert read_state(running(tmp_path / "a")).slow() == ""
    uneven = {"seconds_local_by_part": [0.2, 0.5, 0.2]}
    state = read_state(running(tmp_path / "b", uneven))
    assert state.part_seconds() == pytest.approx([0.2, 0.5, 0.2])
    assert state.slow() == "part 1 takes 2.5 times as long as the median part"
    state = read_state(running(tmp_path / "c", {"seconds_evaluate": 3.0}))
    assert state.slow().startswith("machines wait for the server's evaluation (3.00 s")
    state = read_state(running(tmp_path / "d", {"seconds_correct_beside": 3.0}))
    assert state.slow().startswith("machines wait for the server's correction beside them (3.00 s; lower algorithm.S)")


def test_a_run_that_writes_nothing_any_more(tmp_path: Path) -> None:
    run = running(tmp_path / "a")
    assert not read_state(run).is_silent
    earlier = time.time() - 100
    os.utime(run / "metrics.jsonl", (earlier, earlier))
    assert read_state(run).is_silent
    (run / "logs").mkdir()
    (run / "logs" / "server.log").write_text("resumed")
    assert not read_state(run).is_silent


def started_here(run: Path, command: str, host: str = platform.node(), seconds_ago: float = 0) -> Path:
    """Adds starts.json; the last row was written so many seconds ago."""
    (run / "starts.json").write_text(json.dumps([{"command": command, "host": host, "date": "2026-01-01"}]))
    earlier = time.time() - seconds_ago
    os.utime(run / "metrics.jsonl", (earlier, earlier))
    return run


def test_a_run_whose_process_is_gone_has_stopped(tmp_path: Path) -> None:
    run = started_here(running(tmp_path / "a"), "llcg train algorithm.K=4")
    state = read_state(run)
    assert state.running is False
    assert status_line(state).endswith(
        f"; no process works on it: go on with: llcg train algorithm.K=4 run_dir={tmp_path}/a"
    )
    started_here(run, "llcg train -m algorithm.K=1,2", seconds_ago=30)
    assert status_line(read_state(run)).endswith(": go on with: llcg train -m algorithm.K=1,2")
    with RunLock(run):
        assert read_state(run).running
        assert status_line(read_state(run)).endswith(" s left")
        started_here(run, "llcg train", seconds_ago=100)
        assert status_line(read_state(run)).endswith(f"no round for 100 s: stuck? See {run}/logs")
    (run / "summary.json").write_text(json.dumps({"num_rounds": 3}))
    assert read_state(run).running is None


def test_a_run_of_another_host_may_be_stopped_or_stuck(tmp_path: Path) -> None:
    run = started_here(running(tmp_path / "a"), "llcg train run_dir=here", "elsewhere", seconds_ago=100)
    state = read_state(run)
    assert state.running is None
    assert "no round for 100 s: stopped (then go on with: llcg train run_dir=here), or stuck?" in status_line(state)


def test_a_job_that_is_starting_has_no_records_yet(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    assert read_state(tmp_path).rows == []


@pytest.mark.parametrize("content", ["7", "a: [", "- x"])
def test_folders_without_a_run_are_a_users_mistake(tmp_path: Path, content: str) -> None:
    with pytest.raises(UserError, match="nowhere is not a folder"):
        read_state(tmp_path / "nowhere")
    write_run(tmp_path / "sweep" / "K=1", [0.5])
    with pytest.raises(UserError, match="name one of the runs in it: .*K=1"):
        read_state(tmp_path / "sweep")
    (tmp_path / "config.yaml").write_text(content)
    with pytest.raises(UserError, match="config.yaml"):
        read_state(tmp_path)


def test_what_a_stranger_wrote_is_shown_and_nothing_more(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Terminals obey escape sequences; quotes that do not close and numbers beyond all bounds end no program."""
    run = running(tmp_path / "a", {"seconds_local": 1e400, "seconds_evaluate": 10**400, "warnings": ["\x1b]0;hi\x07"]})
    start = {"command": "llcg train 'run_dir", "date": "\x1b[2J", "host": "\x9b1;1H"}
    (run / "starts.json").write_text(json.dumps([start]))
    assert watch([str(run), "--once"]) in (0, 1)
    shown = capsys.readouterr().out
    assert r"warning: round 3: \x1b]0;hi\x07" in shown
    assert not {"\x1b", "\x07", "\x9b"} & set(shown)
    (run / "config.yaml").write_text("seed: ${oc.env:HOME}")
    with pytest.raises(UserError, match="recorded settings have values"):
        read_state(run)


@pytest.mark.parametrize("row", [{"warnings": 3}, {"val_score": "high"}, {"checkpoint_round": [1]}])
def test_rows_of_the_wrong_kind_are_not_rows(tmp_path: Path, row: dict[str, Any]) -> None:
    assert read_state(running(tmp_path / "a", row)).rows == []
