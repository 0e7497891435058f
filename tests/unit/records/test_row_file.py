"""metrics.jsonl grows by whole lines."""

from pathlib import Path

from llcg_dist.records.reading import readable_rows
from llcg_dist.records.row_file import RowFile

ROWS = [{"round": r} for r in range(1, 5)]


def test_rows_are_appended_once(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text("of an earlier start")
    file = RowFile(path, ROWS[:1])
    assert readable_rows(tmp_path) == ROWS[:1]
    file.append(ROWS[:1])
    file.append(ROWS[:3])
    file.sync()
    assert readable_rows(tmp_path) == ROWS[:3]


def test_half_a_line_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    file = RowFile(path, ROWS[:2])
    with path.open("ab") as torn:
        torn.write(b'{"rou')
    file.append(ROWS)
    file.close()
    assert readable_rows(tmp_path) == ROWS
