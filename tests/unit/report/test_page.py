"""Pages and the files beside them, from records that are written here."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from llcg_dist.errors import UserError
from llcg_dist.report import write_report
from tests.helpers.html_tables import figures_of, numbers_of, tables_of
from tests.helpers.run_records import PARTITION, write_run


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of one run."""
    folder = tmp_path_factory.mktemp("runs")
    write_run(folder / "a", [0.5, 0.8765432, 0.8123456])
    page, _ = write_report([folder])
    assert page == folder / "report" / "index.html"
    return page


def test_a_run_is_shown_as_its_summary_has_it(page: Path) -> None:
    _, (row,) = tables_of(page)
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
    assert (row["run"], row["method"], row["seed"], row["local steps"]) == ("a", "llcg", "3", "123456")


def test_every_figure_comes_with_its_picture_and_its_numbers(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a", [0.5, 0.75], row={"kappa_a_sq": 0.25, "anything": 2})
    (run / "partition.json").write_text(json.dumps(PARTITION))
    page, _ = write_report([tmp_path])
    names = figures_of(page)
    assert names == [
        "score_by_round", "loss_by_round", "score_by_bytes", "score_by_time", "score_by_compute", "steps_by_round",
        "theory_terms", "further_columns", "bytes_by_kind", "seconds_by_phase", "memory", "partition",
    ]  # fmt: skip
    for name in names:
        assert (page.parent / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert (page.parent / "curves.png").read_bytes().startswith(b"\x89PNG")

    def numbers(name: str) -> list[dict[str, str]]:
        return numbers_of(page, name)

    assert [float(row["mean"]) for row in numbers("score_by_round")] == [0.5, 0.75]
    assert [float(row["x"]) for row in numbers("score_by_bytes")] == pytest.approx([1.523128, 3.046256])
    assert [float(row["x"]) for row in numbers("score_by_time")] == pytest.approx([0.8, 1.6])
    assert [float(row["x"]) for row in numbers("score_by_compute")] == pytest.approx([0.7, 1.4])
    for name, column, value in (("theory_terms", "kappa_a_sq", 0.25), ("further_columns", "anything", 2)):
        assert [(row["column"], float(row["mean"])) for row in numbers(name)] == [(column, value)] * 2
    assert numbers("bytes_by_kind")[0]["feature_bytes"] == "20000.0"
    # 0.5 s of local steps and 0.3 s of evaluation fit into 0.8 - 0.1 - 0.2 = 0.5 s
    assert float(numbers("seconds_by_phase")[0]["seconds_hidden"]) == pytest.approx(0.3)
    assert [row["label_1"] for row in numbers("partition")] == ["1", "17"]


def test_the_page_needs_nothing_else(page: Path) -> None:
    text = page.read_text()
    assert "http" not in text
    assert not re.search(r"<(img|link|script|iframe)[^>]+(src|href)=['\"](?!data:)", text)
    identities = re.findall(r' id="([^"]+)"', text)
    assert len(identities) == len(set(identities))
    referred = set(re.findall(r"(?:href=\"|url\()#([^\")]+)", text))
    assert referred <= set(identities)


def test_what_is_not_known_is_a_dash_and_texts_are_escaped(tmp_path: Path) -> None:
    write_run(tmp_path / "a", [None, None], "<b>&$", settings={"model.arch": "$\\x$</script>"})
    write_run(tmp_path / "b", [0.5], "<b>&$", settings={"model.arch": "B"})
    page, _ = write_report([tmp_path])
    (row, _), _ = tables_of(page)
    assert row["final val %"] == row["best val %"] == row["test % at best val"] == "–"
    assert row["method"] == "<b>&$"
    assert "<b>" not in page.read_text()
    assert page.read_text().count("</script>") == page.read_text().count("<script")


def test_several_graphs_are_sections_with_files_of_their_own(tmp_path: Path) -> None:
    write_run(tmp_path / "1", [0.5], dataset="a/b", settings={"dataset.name": "a/b"})
    write_run(tmp_path / "2", [0.5], dataset="c", settings={"dataset.name": "c"})
    page, results = write_report([tmp_path])
    assert list(results) == ["a/b", "c"]
    for name in ("a_b_score_by_round.png", "c_score_by_round.png", "a_b_results.csv", "c_runs.csv"):
        assert (page.parent / name).exists()


def test_a_report_can_be_written_again_and_names_what_has_not_ended(tmp_path: Path) -> None:
    write_run(tmp_path / "a", [0.5])
    write_report([tmp_path])
    write_run(tmp_path / "b", [0.6], "psgd_pa")
    (write_run(tmp_path / "killed", [0.6]) / "summary.json").unlink()
    page, _ = write_report([tmp_path])
    assert [row["method"] for row in tables_of(page)[0]] == ["llcg", "psgd_pa"]
    assert f"not ended: {tmp_path / 'killed'}." in page.read_text()


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    write_run(tmp_path / "a", [0.5])
    (tmp_path / "report").write_text("in the way")
    with pytest.raises(UserError, match=f"cannot write to {tmp_path / 'report'}"):
        write_report([tmp_path])


def test_runs_of_different_length_and_gaps_are_drawn(tmp_path: Path) -> None:
    write_run(tmp_path / "1", [None, 0.5, None])
    write_run(tmp_path / "2", [0.4, None], seed=4)
    page, _ = write_report([tmp_path])
    assert len(tables_of(page)[1]) == 2
    scores = {float(row["x"]): float(row["mean"]) for row in numbers_of(page, "score_by_round") if row["mean"]}
    assert scores == {1: 0.4, 2: 0.5}  # the third round was not scored


def test_reading_records_loads_no_torch() -> None:
    program = (
        "import sys, llcg_dist.report; print([m for m in ('torch', 'dgl', 'torch_geometric') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (found.returncode, found.stdout.strip()) == (0, "[]"), found.stderr
