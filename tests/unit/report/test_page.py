"""Pages and the files beside them, from records that are written here."""

import base64
import json
import platform
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import llcg_dist
from llcg_dist.errors import UserError
from llcg_dist.records.classes import write_class_results
from llcg_dist.report import write_report
from llcg_dist.training.class_scores import class_scores
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
        "final val %": "81.23",
        "best val %": "87.65",
        "test % at best val": "86.42",
        "MB up a round": "1.235",
        "MB down a round": "0.500",
        "MB as the paper counts": "3.557",
        "seconds": "12.3",
        "method": "llcg",
        "seed": "3",
        "rounds": "3",
        "local steps": "123,456",
    }
    assert {name: row[name] for name in shown} == shown
    assert row["run"] == f"{page.parent.parent.name}/a"
    assert "±" not in page.read_text()  # of one run there is no spread


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

    assert [float(row["mean"]) for row in numbers("score_by_round")] == [50, 75]  # in %, as everywhere
    assert [float(row["x"]) for row in numbers("score_by_bytes")] == pytest.approx([1.523128, 3.046256])
    assert [float(row["x"]) for row in numbers("score_by_time")] == pytest.approx([0.8, 1.6])
    assert [float(row["x"]) for row in numbers("score_by_compute")] == pytest.approx([0.7, 1.4])
    for name, column, value in (("theory_terms", "kappa_a_sq", 0.25), ("further_columns", "anything", 2)):
        assert [(row["column"], float(row["mean"])) for row in numbers(name)] == [(column, value)] * 2
    assert numbers("bytes_by_kind")[0]["MB features"] == "0.02"
    # 0.5 s of local steps and 0.3 s of evaluation fit into 0.8 - 0.1 - 0.2 = 0.5 s
    assert float(numbers("seconds_by_phase")[0]["seconds_hidden"]) == pytest.approx(0.3)
    assert [row["label_1"] for row in numbers("partition")] == ["1", "17"]


def test_the_page_needs_nothing_else(page: Path) -> None:
    text = re.sub(r"base64,[A-Za-z0-9+/=]+", "", page.read_text())
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


def test_a_report_can_be_written_again_and_shows_what_has_not_ended(tmp_path: Path) -> None:
    write_run(tmp_path / "a", [0.5])
    write_report([tmp_path])
    write_run(tmp_path / "b", [0.6], "psgd_pa")
    killed = write_run(tmp_path / "killed", [0.6, 0.7], settings={"num_rounds": 9, "dataset.name": "synthetic"})
    (killed / "summary.json").unlink()
    with (killed / "metrics.jsonl").open("a") as file:
        file.write('{"round": 3, "val_sc')  # it may be writing
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "metrics.jsonl").touch()
    page, _ = write_report([tmp_path])
    results = [row for table in tables_of(page) for row in table if "state" in row]
    assert [(row["method"], row["state"], row["best val %"]) for row in results if row["state"] != "–"] == [
        ("llcg", "unfinished: 2 of 9 rounds", "70.00")
    ]
    assert f"no round yet: {tmp_path / 'new'}." in page.read_text()


def test_a_run_that_has_not_ended_is_a_report(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a", [0.5], settings={"num_rounds": 3})
    (run / "summary.json").unlink()
    page, _ = write_report([run])
    assert [row["rounds"] for row in tables_of(page)[1]] == ["1 of 3, unfinished"]


def test_the_page_carries_its_files(tmp_path: Path) -> None:
    """Every picture and every table of numbers, and the settings, are inside it: it can be mailed alone."""
    write_run(tmp_path / "a", [0.5, 0.75], settings={"model.hidden": 7})
    page, _ = write_report([tmp_path])
    inside = dict(re.findall(r'<a download="([^"]+)" href="data:[a-z/]+;base64,([^"]+)"', page.read_text()))
    for name in (*(f"{figure}.{kind}" for figure in figures_of(page) for kind in ("png", "csv")), "results.csv"):
        assert base64.b64decode(inside[name]) == (page.parent / name).read_bytes()
    assert b"hidden: 7" in base64.b64decode(inside[f"{tmp_path.name}_a.yaml"])


def test_how_report_and_runs_came_about(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a", [0.5])
    start = {"command": "llcg train seed=3 'a<b'", "version": "7.7", "date": "2026-01-02T03:04:05", "host": "node1"}
    (run / "starts.json").write_text(json.dumps([start]))
    (run / "logs").mkdir()
    (run / "logs" / "server.log").touch()
    page, _ = write_report([tmp_path])
    text = page.read_text()
    assert f"<code>llcg report {tmp_path}</code> llcg_dist {llcg_dist.__version__}, " in text
    assert f"on {platform.node()}" in text
    assert "<code>llcg train seed=3 &#x27;a&lt;b&#x27;</code>" in text
    assert '<a href="../a/logs/server.log">' in text
    assert f"<code>{platform.node()}:{run.resolve()}</code>" in text
    (row,) = tables_of(page)[1]
    assert (row["host"], row["version"], row["date"]) == ("node1", "7.7", "2026-01-02T03:04:05")


def test_forty_eight_runs_fit_into_a_mail(tmp_path: Path) -> None:
    for i, method in enumerate(["single", "llcg", "psgd_pa", "ggs"]):
        for k in (1, 2, 4, 8):
            for seed in range(3):
                scores: list[float | None] = [0.5 + 0.001 * i * r for r in range(50)]
                write_run(tmp_path / f"{method}-{k}-{seed}", scores, method, seed, {"algorithm.K": k})
    page, _ = write_report([tmp_path])
    assert page.stat().st_size < 5_000_000


def test_results_of_every_class(tmp_path: Path) -> None:
    """F1 of every group; precision, recall, support and the confusion matrix of the best distributed one."""
    labels, names = np.array([0, 0, 1, 2]), ["ant", "bee", "cow"]
    for name, method, predicted in (("a", "single", [0, 0, 1, 2]), ("b", "llcg", [0, 1, 1, 2])):
        run = write_run(tmp_path / name, [0.5], method)
        scores = class_scores(np.array(predicted), labels, names)
        write_class_results(run / "classes.json", {"task": "multiclass", "val": None, "test": scores})
    write_run(tmp_path / "old", [0.4], "psgd_pa")  # of a version without
    page, _ = write_report([tmp_path])
    f1 = {(row["group"], row["class"]): float(row["f1"]) for row in numbers_of(page, "classes")}
    assert f1["single", "ant"] == 100
    assert f1["llcg", "ant"] == pytest.approx(200 / 3, abs=1e-3)
    assert [row["ant"] for row in numbers_of(page, "confusion")] == ["1", "0", "0"]
    ant = next(row for table in tables_of(page) for row in table if row.get("class") == "ant")
    assert ant == {"class": "ant", "precision %": "100.00", "recall %": "50.00", "F1 %": "66.67", "support": "2"}


def test_results_of_every_label(tmp_path: Path) -> None:
    """Of nodes with several labels there is no confusion matrix."""
    labels = np.array([[1, 0], [1, 1], [0, 1]])
    run = write_run(tmp_path / "a", [0.5])
    scores = class_scores(np.array([[1, 0], [0, 1], [0, 0]], bool), labels, ["warm", "wet"])
    write_class_results(run / "classes.json", {"task": "multilabel", "val": scores, "test": None})
    page, _ = write_report([tmp_path])
    assert "confusion" not in figures_of(page)
    assert "F1 on the validation nodes (%)" in page.read_text()
    warm = next(row for table in tables_of(page) for row in table if row.get("class") == "warm")
    assert (warm["precision %"], warm["recall %"], warm["support"]) == ("100.00", "50.00", "2")


def test_the_parts_have_the_names_of_the_classes(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a", [0.5])
    (run / "partition.json").write_text(json.dumps(PARTITION | {"class_names": ["ant", "=bee()"]}))
    page, _ = write_report([tmp_path])
    assert [row["label_=bee()"] for row in numbers_of(page, "partition")] == ["1", "17"]
    drawn = page.read_text().split("<figure id='partition'")[1].split("</figure>")[0]
    assert ">ant</text>" in drawn
    assert ">=bee()</text>" in drawn


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
    assert scores == {1: 40, 2: 50}  # the third round was not scored


def test_reading_records_loads_no_torch() -> None:
    program = (
        "import sys, llcg_dist.report; print([m for m in ('torch', 'dgl', 'torch_geometric') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (found.returncode, found.stdout.strip()) == (0, "[]"), found.stderr
