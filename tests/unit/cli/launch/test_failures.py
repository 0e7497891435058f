"""What the launcher says of ranks that failed: one line, once."""

import json
import signal
from dataclasses import dataclass
from pathlib import Path

import pytest
from torch.distributed.elastic.multiprocessing.errors import ProcessFailure

from llcg_dist.cli.launch.failures import report_failure, report_launcher_error


@dataclass
class Ended:
    exitcode: int
    error_file: str

    def signal_name(self) -> str:
        return "SIGSEGV"


def ended(folder: Path, rank: int, code: int, message: str | None) -> Ended:
    """A rank that ended, and what it wrote to its error file; None: nothing."""
    file = folder / str(rank) / "error.json"
    file.parent.mkdir(parents=True)
    if message is not None:
        file.write_text(message)
    return Ended(code, str(file))


def said(text: str) -> str:
    return json.dumps({"message": {"message": text}})


@pytest.mark.parametrize("alone", [True, False])
def test_a_machine_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str], alone: bool) -> None:
    failure = ended(tmp_path, 2, 1, said("rank 2 (part 1): no\nluck"))
    assert report_failure(2, failure, tmp_path, rank_0_has_terminal=alone) == 1
    assert capsys.readouterr().err == "llcg: error: rank 2 (part 1): no luck\n"


def test_what_rank_0_has_said_is_not_said_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whichever rank the agent saw end first: on one host rank 0 has the terminal."""
    ended(tmp_path, 0, 2, said("the same"))
    failure = ended(tmp_path, 1, 2, said("the same"))
    assert report_failure(1, failure, tmp_path, rank_0_has_terminal=True) == 2
    assert capsys.readouterr().err == ""
    assert report_failure(1, failure, tmp_path, rank_0_has_terminal=False) == 2
    assert capsys.readouterr().err == "llcg: error: the same\n"


@pytest.mark.parametrize("content", [None, "", "{", "[]", '{"message": 3}', '{"message": {"message": [1]}}'])
def test_a_rank_that_could_not_say_why(tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str | None) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "ranks.json").write_text('{"rank_of_part": [1, 2], "server": 0}')
    assert report_failure(2, ended(tmp_path, 2, -11, content), tmp_path, rank_0_has_terminal=True) == 1
    line = f"llcg: error: rank 2 (part 1) was killed by SIGSEGV; its log is under {tmp_path}/logs\n"
    assert capsys.readouterr().err == line


@pytest.mark.parametrize("ranks", ["", "{", "[1]", '{"server": "x"}', '{"server": 0, "rank_of_part": [1]}'])
def test_ranks_that_are_not_known(tmp_path: Path, capsys: pytest.CaptureFixture[str], ranks: str) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "ranks.json").write_text(ranks)
    report_failure(2, ended(tmp_path, 2, 3, None), tmp_path, rank_0_has_terminal=True)
    assert capsys.readouterr().err.startswith("llcg: error: rank 2 ended with 3; its log")


def test_what_the_agent_raises(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "logs").mkdir()
    assert report_launcher_error(ValueError("first\nsecond"), tmp_path) == 1
    log = tmp_path / "logs" / "launcher.log"
    line = f"the launcher of the ranks failed: ValueError: first; traceback in {log}"
    assert capsys.readouterr().err == f"llcg: error: {line}\n"
    assert "ValueError: first" in log.read_text()
    assert report_launcher_error(OSError(28, "No space left on device", "/x"), tmp_path / "none") == 1
    reason = "/x: No space left on device; make room, and start the same command again"
    assert capsys.readouterr().err == f"llcg: error: the launcher of the ranks failed: {reason}\n"


@pytest.mark.parametrize(
    ("killed_by", "why"), [(signal.SIGABRT, " (as Gloo does with a rank to which"), (signal.SIGKILL, ";")]
)
def test_an_aborted_rank_is_one_line_with_its_part_and_what_may_have_done_it(
    killed_by: signal.Signals, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Gloo aborts the process that gets a message longer than announced, which nobody can catch there."""
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "ranks.json").write_text('{"rank_of_part": [2, 1], "server": 0}')
    failure = ProcessFailure(local_rank=2, pid=5, exitcode=-killed_by, error_file=str(tmp_path / "none"))
    assert report_failure(2, failure, tmp_path, rank_0_has_terminal=True) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert f"rank 2 (part 0) was killed by {killed_by.name}{why}" in line
