"""Where the main thread is: every unit of work moves it on, waiting is told apart."""

import pytest

from llcg_dist.data import progress
from llcg_dist.data.progress import Report


def test_work_moves_on() -> None:
    progress.begin("round 3")
    before = progress.report()
    assert (before.waits, before.place) == (False, "round 3, unit 0")
    progress.advance()
    progress.advance()
    after = progress.report()
    assert (after.moves - before.moves, after.place) == (2, "round 3, unit 2")


def test_waiting_is_told_and_its_end_moves_on() -> None:
    before = progress.report()
    with progress.waiting(), progress.waiting():
        assert progress.report().waits
        assert progress.report().moves == before.moves
    assert not progress.report().waits
    assert progress.report().moves > before.moves


def test_waiting_ends_with_an_error_too() -> None:
    with pytest.raises(KeyError), progress.waiting():
        raise KeyError
    assert not progress.report().waits


@pytest.mark.parametrize("report", [Report(), Report(17, True, "the handshake (Ready), unit 3")])
def test_as_text(report: Report) -> None:
    assert Report.decode(report.encode()) == report


@pytest.mark.parametrize("text", ["", "3", "3 works", "x works at it", "3 sleeps at it"])
def test_other_text(text: str) -> None:
    with pytest.raises(ValueError, match=r"unpack|invalid literal|either waits or works"):
        Report.decode(text)
