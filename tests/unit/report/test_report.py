"""Pages, tables and files from records that are written here."""

import csv
import json
import re
import statistics
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from llcg_dist.errors import UserError
from llcg_dist.report import find_runs, write_report
from llcg_dist.report.groups import Study, studies
from llcg_dist.report.sweep import sweep_figures
from llcg_dist.report.tables import results_table
from tests.helpers.run_records import PARTITION, write_run


class Tables(HTMLParser):
    """Of every table its rows of cells."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self._inside = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("td", "th"):
            self.tables[-1][-1].append("")
            self._inside = True

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.tables[-1][-1][-1] += data


def tables_of(page: Path) -> list[list[dict[str, str]]]:
    found = Tables(page.read_text()).tables
    return [[dict(zip(head, row, strict=True)) for row in rows] for head, *rows in found]


def numbers_of(page: Path, figure: str) -> list[dict[str, str]]:
    with (page.parent / f"{figure}.csv").open() as file:
        return list(csv.DictReader(file))


def figures_of(page: Path) -> list[str]:
    return re.findall(r"<figure id='([^']+)'", page.read_text())


def test_a_run_is_shown_as_its_summary_has_it(tmp_path: Path) -> None:
    write_run(tmp_path / "a", [0.5, 0.8765432, 0.8123456])
    page, _ = write_report([tmp_path])
    assert page == tmp_path / "report" / "index.html"
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


def test_results_are_means_over_seeds(tmp_path: Path) -> None:
    finals = [0.812, 0.834, 0.7977]
    for seed, final in enumerate(finals):
        write_run(tmp_path / str(seed), [0.5, final], seed=seed)
    write_run(tmp_path / "other", [0.4], "psgd_pa")
    page, results = write_report([tmp_path])
    (llcg, psgd_pa), runs = tables_of(page)
    mean, std = 100 * statistics.mean(finals), 100 * statistics.stdev(finals)
    assert llcg["final val %"] == f"{mean:.2f} ± {std:.2f}"
    assert llcg["seeds"] == "3"
    assert llcg["MB sent a round"] == "1.523"
    assert llcg["MB in all"] == "7.65"
    assert psgd_pa["final val %"] == "40.00"
    assert len(runs) == 4
    with (tmp_path / "report" / "results.csv").open() as file:
        first = next(csv.DictReader(file))
    assert float(first["final val %"]) == pytest.approx(mean)
    assert float(first["final val % (std)"]) == pytest.approx(std)
    assert [cell.text for cell in results["synthetic"][0].values()] == list(llcg.values())


def the_study(folder: Path) -> Study:
    (study,) = studies(find_runs([folder]))
    return study


def test_the_papers_numbers_stand_beside_ours_where_the_cell_is_its(tmp_path: Path) -> None:
    paper = {"dataset": "ogbn-arxiv", "model": "gcn", "num_machines": 8}
    write_run(tmp_path / "a/1", [0.7], **paper)
    write_run(tmp_path / "a/2", [0.7], "server_only", **paper)
    write_run(tmp_path / "a/3", [0.7], "psgd_pa", settings={"cluster.num_machines": 4}, **paper | {"num_machines": 4})
    llcg, psgd_pa, server_only = results_table(the_study(tmp_path / "a"))
    assert (llcg["paper: test %"].text, llcg["paper: MB"].text) == ("70.21 ± 0.13", "3.55")
    for row in (psgd_pa, server_only):  # on four machines; not in the paper
        assert (row["paper: test %"].text, row["paper: MB"].text) == ("–", "–")
    write_run(tmp_path / "b/4", [0.7], dataset="ogbn-products", num_machines=16)
    (row,) = results_table(the_study(tmp_path / "b"))
    assert (row["paper: test %"].text, row["paper: MB"].text) == ("77.77 ± 0.23", "–")
    write_run(tmp_path / "c/5", [0.7], settings={"dataset.subset": 1000}, **paper)
    (row,) = results_table(the_study(tmp_path / "c"))
    assert "paper: test %" not in row


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
    # 0.5 s of local steps and 0.3 s of judging fit into 0.8 - 0.1 - 0.2 = 0.5 s
    assert float(numbers("seconds_by_phase")[0]["seconds_hidden"]) == pytest.approx(0.3)
    assert [row["label_1"] for row in numbers("partition")] == ["1", "17"]


def test_a_swept_number_is_a_line_and_two_are_a_map(tmp_path: Path) -> None:
    for K in (1, 4, 16):
        for seed in (0, 1):
            write_run(tmp_path / "one" / f"{K}-{seed}", [K / 20 + seed / 100], seed=seed, settings={"algorithm.K": K})
            for S in (0, 2):
                settings = {"algorithm.K": K, "algorithm.S": S}
                write_run(tmp_path / "two" / f"{K}-{S}-{seed}", [K / 20 + S / 50], seed=seed, settings=settings)
    (line,) = sweep_figures(the_study(tmp_path / "one"))
    assert line.name == "sweep_llcg_K"
    assert [(row["algorithm.K"], row["mean"]) for row in line.data] == [
        (1, pytest.approx(5.5)), (4, pytest.approx(20.5)), (16, pytest.approx(80.5)),
    ]  # fmt: skip
    (heat_map,) = sweep_figures(the_study(tmp_path / "two"))
    assert heat_map.name == "heat_llcg_K_S"
    assert len(heat_map.data) == 6
    assert heat_map.data[-1]["mean"] == pytest.approx(84)
    assert heat_map.data[-1]["runs"] == 2


def test_the_page_needs_nothing_else(tmp_path: Path) -> None:
    write_run(tmp_path / "a", [0.5, 0.6])
    page, _ = write_report([tmp_path])
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


def test_reading_records_loads_no_torch() -> None:
    program = (
        "import sys, llcg_dist.report; print([m for m in ('torch', 'dgl', 'torch_geometric') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (found.returncode, found.stdout.strip()) == (0, "[]"), found.stderr
