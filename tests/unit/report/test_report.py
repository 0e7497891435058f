"""Pages and tables from records that are written here."""

import base64
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from llcg_dist.errors import UserError
from llcg_dist.report import find_runs, write_report
from llcg_dist.report.plots import by_label

ROW = {
    "local_steps": 8,
    "bytes_up": 1_000_000,
    "bytes_down": 500_000,
    "feature_bytes": 20_000,
    "gradient_bytes": 3_000,
    "control_bytes": 128,
    "exchanges": 1,
}


def write_run(folder: Path, scores: list[float | None], seconds: float = 12.34567, **summary: Any) -> Path:
    folder.mkdir(parents=True)
    rows = [
        {"round": r, "val_score": score, "test_score": score, "train_loss": score and 1 - score} | ROW
        for r, score in enumerate(scores, start=1)
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    best = max((score for score in scores if score is not None), default=None)
    content = {
        "algorithm": "llcg",
        "batchnorm_stats": "recalibrate",
        "dataset": "synthetic",
        "metric": "accuracy",
        "seed": 3,
        "final_val_score": scores[-1],
        "best_val_score": best,
        "test_score_at_best_val": best and best - 0.0123456,
        "mb_up_per_round": 1.23456789,
        "mb_down_per_round": 0.5,
        "feature_mb_per_round": 0.02,
        "paper_mb_per_round": 3.557,
        "local_steps_total": 123456,
        "seconds_total": seconds,
    }
    (folder / "summary.json").write_text(json.dumps(content | summary))
    return folder


class Table(HTMLParser):
    """The page's rows of cells."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self._inside = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
            self._inside = True

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.rows[-1][-1] += data


def rows_of(page: Path) -> list[dict[str, str]]:
    head, *rows = Table(page.read_text()).rows
    return [dict(zip(head, row, strict=True)) for row in rows]


def test_numbers_on_the_page_are_those_of_the_records(tmp_path: Path) -> None:
    write_run(tmp_path / "a", [0.5, 0.8765432, 0.8123456])
    page, summaries = write_report([tmp_path])
    assert page == tmp_path / "report" / "index.html"
    (row,) = rows_of(page)
    shown = {
        "final val": 0.8123456,
        "best val": 0.8765432,
        "test at best val": 0.8765432 - 0.0123456,
        "MB up a round": 1.23456789,
        "MB down a round": 0.5,
        "paper's MB": 3.557,
        "seconds": 12.34567,
    }
    for name, value in shown.items():
        assert float(row[name]) == pytest.approx(value, rel=5e-4), name
    assert row["method"] == "llcg"
    assert row["BatchNorm statistics"] == "recalibrate"
    assert (row["seed"], row["local steps"]) == ("3", "123456")
    assert summaries == [json.loads((tmp_path / "a" / "summary.json").read_text())]


def test_the_picture_is_inside_the_page(tmp_path: Path) -> None:
    write_run(tmp_path / "a", [0.5, 0.6])
    page, _ = write_report([tmp_path])
    text = page.read_text()
    picture = base64.b64decode(re.search(r"data:image/png;base64,([^']+)'", text)[1])
    assert picture == (tmp_path / "report" / "curves.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert "http" not in text  # it opens anywhere


def test_what_is_not_known_is_a_dash_and_texts_are_escaped(tmp_path: Path) -> None:
    write_run(tmp_path / "a", [None, None], algorithm="<b>&")
    page, _ = write_report([tmp_path])
    (row,) = rows_of(page)
    assert row["final val"] == row["best val"] == row["test at best val"] == "–"
    assert row["method"] == "<b>&"
    assert "<b>" not in page.read_text()


def test_a_report_can_be_written_again(tmp_path: Path) -> None:
    write_run(tmp_path / "a", [0.5])
    write_report([tmp_path])
    write_run(tmp_path / "b", [0.6], algorithm="psgd_pa")
    page, _ = write_report([tmp_path])
    assert [row["method"] for row in rows_of(page)] == ["llcg", "psgd_pa"]


def test_runs_are_found_at_and_below_the_paths_oldest_first(tmp_path: Path) -> None:
    for age, name in enumerate(["deep/er/run", "b", "a"]):
        run = write_run(tmp_path / name, [0.1 * age])
        os.utime(run / "summary.json", (1000 + age, 1000 + age))
    unfinished = tmp_path / "unfinished"
    unfinished.mkdir()
    (unfinished / "metrics.jsonl").write_text("")
    expected = [tmp_path / "deep/er/run", tmp_path / "b", tmp_path / "a"]
    assert [run.path for run in find_runs([tmp_path])] == expected
    assert [run.path for run in find_runs([tmp_path / "a", tmp_path])] == expected  # each once
    assert [run.path for run in find_runs([tmp_path / "b"])] == [tmp_path / "b"]


def test_a_run_reads_its_rows(tmp_path: Path) -> None:
    (run,) = find_runs([write_run(tmp_path / "a", [0.25, None, 0.5])])
    assert run.method == "llcg"
    assert run.column("val_score") == [0.25, None, 0.5]
    assert run.sent_megabytes() == pytest.approx([1.523, 3.046, 4.569])


def refusal(*paths: Path) -> str:
    with pytest.raises(UserError) as refused:
        find_runs(paths)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_paths_without_runs_are_named(tmp_path: Path) -> None:
    assert str(tmp_path / "nowhere") in refusal(tmp_path / "nowhere")
    assert f"no finished run (summary.json) in {tmp_path}" in refusal(tmp_path)


@pytest.mark.parametrize("name", ["summary.json", "metrics.jsonl"])
@pytest.mark.parametrize("content", ['{"round": 1', '{"round": 1}', "[1]"], ids=["torn", "other keys", "a list"])
def test_damaged_records_are_named(tmp_path: Path, name: str, content: str) -> None:
    run = write_run(tmp_path / "a", [0.5])
    (run / name).write_text(content)
    assert str(run) in refusal(tmp_path)


def test_missing_rows_are_named(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a", [0.5])
    (run / "metrics.jsonl").unlink()
    assert str(run) in refusal(tmp_path)


def test_methods_are_apart_by_statistics_only_where_both_are_there(tmp_path: Path) -> None:
    write_run(tmp_path / "1", [0.1])
    write_run(tmp_path / "2", [0.2], batchnorm_stats="average")
    write_run(tmp_path / "3", [0.3], algorithm="psgd_pa", batchnorm_stats="average")
    write_run(tmp_path / "4", [0.4], algorithm="psgd_pa", batchnorm_stats="average", seed=4)
    groups = {label: len(runs) for label, runs in by_label(find_runs([tmp_path])).items()}
    assert groups == {"llcg (recalibrate)": 1, "llcg (average)": 1, "psgd_pa": 2}


def test_runs_of_different_length_and_gaps_are_drawn(tmp_path: Path) -> None:
    write_run(tmp_path / "1", [None, 0.5, None])
    write_run(tmp_path / "2", [0.4, None], seed=4)
    page, summaries = write_report([tmp_path])
    assert len(summaries) == len(rows_of(page)) == 2


def test_reading_records_loads_no_torch() -> None:
    program = (
        "import sys, llcg_dist.report; print([m for m in ('torch', 'dgl', 'torch_geometric') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (found.returncode, found.stdout.strip()) == (0, "[]"), found.stderr
