"""starts.json: an entry for every start of a run."""

from pathlib import Path

import pytest

import llcg_dist
from llcg_dist.records.starts import COMMAND_VARIABLE, read_starts, record_start


def test_every_start_says_how_and_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(COMMAND_VARIABLE, "llcg train 'model.arch=A B'")
    record_start(tmp_path, "accuracy", 0)
    record_start(tmp_path, "accuracy", 7)
    first, second = read_starts(tmp_path)
    assert (first["after_round"], second["after_round"]) == (0, 7)
    assert first["command"] == "llcg train 'model.arch=A B'"
    assert first["version"] == llcg_dist.__version__
    assert first["host"]
    assert first["date"][:4].isdecimal()
    record_start(tmp_path, "accuracy", 0)  # no checkpoint was whole: the run starts anew
    assert len(read_starts(tmp_path)) == 1


def test_a_damaged_or_missing_file_holds_no_starts(tmp_path: Path) -> None:
    assert read_starts(tmp_path) == []
    for content in ("[1", "7", "[7]"):
        (tmp_path / "starts.json").write_text(content)
        assert read_starts(tmp_path) == []
