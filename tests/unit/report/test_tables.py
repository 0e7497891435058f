"""Tables of results."""

import csv
import re
import statistics
from pathlib import Path
from typing import Any

import pytest

from llcg_dist.report import find_runs, write_report
from llcg_dist.report.figure import csv_bytes
from llcg_dist.report.groups import studies
from llcg_dist.report.tables import results_table, run_names
from tests.helpers.html_tables import tables_of
from tests.helpers.run_records import study_of, write_run


def test_the_papers_numbers_stand_beside_ours_where_the_cell_is_its(tmp_path: Path) -> None:
    paper: dict[str, Any] = {"dataset": "ogbn-arxiv", "model": "gcn", "num_machines": 8}
    write_run(tmp_path / "a/1", [0.7], **paper)
    write_run(tmp_path / "a/2", [0.7], "server_only", **paper)
    write_run(tmp_path / "a/3", [0.7], "psgd_pa", settings={"cluster.num_machines": 4}, **paper | {"num_machines": 4})
    llcg, psgd_pa, server_only = results_table(study_of(tmp_path / "a"))
    assert (llcg["paper: test %"].text, llcg["paper: MB"].text) == ("70.21 ± 0.13", "3.55")
    for row in (psgd_pa, server_only):  # on four machines; not in the paper
        assert (row["paper: test %"].text, row["paper: MB"].text) == ("–", "–")
    write_run(tmp_path / "b/4", [0.7], dataset="ogbn-products", num_machines=16)
    (row,) = results_table(study_of(tmp_path / "b"))
    assert (row["paper: test %"].text, row["paper: MB"].text) == ("77.77 ± 0.23", "–")
    write_run(tmp_path / "c/5", [0.7], settings={"dataset.subset": 1000}, **paper)
    (row,) = results_table(study_of(tmp_path / "c"))
    assert "paper: test %" not in row


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


def test_gaps_to_single_and_to_plain_averaging(tmp_path: Path) -> None:
    """In percentage points of the test score, against the run with the same settings of data and model."""
    for method, score in (("single", 0.9), ("psgd_pa", 0.7), ("llcg", 0.85), ("server_only", 0.95)):
        write_run(tmp_path / "a" / method, [score], method)
    rows = {row["method"].text: row for row in results_table(study_of(tmp_path / "a"))}
    assert (rows["llcg"]["gap to single"].text, rows["llcg"]["gap to psgd_pa"].text) == ("-5.00", "+15.00")
    assert (rows["single"]["gap to single"].text, rows["single"]["gap to psgd_pa"].text) == ("–", "+20.00")
    assert rows["psgd_pa"]["gap to single"].value == pytest.approx(-20)
    for method, hidden, score in (("single", 8, 0.5), ("single", 16, 0.6), ("llcg", 8, 0.4), ("llcg", 16, 0.7)):
        write_run(tmp_path / "b" / f"{method}{hidden}", [score], method, settings={"model.hidden": hidden})
    by_width = {
        row["hidden"].text: row["gap to single"].text
        for row in results_table(study_of(tmp_path / "b"))
        if row["method"].text == "llcg"
    }
    assert by_width == {"8": "-10.00", "16": "+10.00"}
    write_run(tmp_path / "c" / "1", [0.5])
    write_run(tmp_path / "c" / "2", [0.5], settings={"algorithm.K": 3})
    assert not any(name.startswith("gap") for name in results_table(study_of(tmp_path / "c"))[0])


def test_gaps_between_loopback_and_processes(tmp_path: Path) -> None:
    """They have the same bits; another number of machines is another cut, and has no counterpart."""
    for name, method, settings in (
        ("a", "psgd_pa", {"cluster.backend": "loopback", "cluster.num_machines": 4}),
        ("b", "llcg", {"cluster.backend": "auto", "cluster.num_machines": 4}),
        ("c", "ggs", {"cluster.backend": "auto", "cluster.num_machines": 8}),
    ):
        write_run(tmp_path / name, [0.5 + (method == "llcg") / 10], method, settings=settings)
    gaps = {row["method"].text: row["gap to psgd_pa"].text for row in results_table(study_of(tmp_path))}
    assert gaps == {"llcg": "+10.00", "ggs": "–", "psgd_pa": "–"}


def test_the_best_distributed_method_is_marked(tmp_path: Path) -> None:
    for method, score in (("single", 0.9), ("psgd_pa", 0.7), ("llcg", 0.85), ("server_only", 0.95)):
        write_run(tmp_path / method, [score], method)
    killed = write_run(tmp_path / "killed", [0.99], "ggs", settings={"num_rounds": 9})
    (killed / "summary.json").unlink()
    page, _ = write_report([tmp_path])
    assert re.findall(r'data-method="(\w+)">(?:<td[^>]*>[^<]*</td>)*<td class="best"', page.read_text()) == ["llcg"]


def test_runs_are_named_with_the_folder_around_them(tmp_path: Path) -> None:
    paths = [tmp_path / "sweeps" / day / "K=1" for day in ("monday", "tuesday")]
    assert list(run_names(paths).values()) == ["monday/K=1", "tuesday/K=1"]
    deep = [tmp_path / day / "sweep" / "K=1" for day in ("monday", "tuesday")]
    assert list(run_names(deep).values()) == ["monday/sweep/K=1", "tuesday/sweep/K=1"]


def test_cells_that_a_spreadsheet_would_run_are_quoted() -> None:
    rows = [{"=name": text} for text in ("=1+1", "+1", "-x", "@a", "a=b", -0.5, 3)]
    lines = csv_bytes(rows).decode().splitlines()
    assert lines == ["'=name", "'=1+1", "'+1", "'-x", "'@a", "a=b", "-0.5", "3"]


def test_the_way_to_cut_does_not_hide_the_method(tmp_path: Path) -> None:
    for cut in ("metis", "random"):
        write_run(tmp_path / cut, [0.5], settings={"partition.method": cut})
    (study,) = studies(find_runs([tmp_path]))
    assert [row["method"].text for row in results_table(study)] == ["llcg", "llcg"]
    assert [row["partition.method"].text for row in results_table(study)] == ["metis", "random"]


def test_cluster_seconds_have_a_column_where_a_run_has_them(tmp_path: Path) -> None:
    write_run(tmp_path / "a/old", [0.7], "psgd_pa")
    assert "cluster seconds" not in results_table(study_of(tmp_path / "a"))[0]
    write_run(tmp_path / "a/new", [0.7, 0.8], row={"cluster_seconds": 1.25})
    found = {row["method"].text: row["cluster seconds"].text for row in results_table(study_of(tmp_path / "a"))}
    assert found == {"llcg": "2.5", "psgd_pa": "–"}


def test_what_was_screened_and_what_noise_is_worth_are_columns_where_there_is_any(tmp_path: Path) -> None:
    write_run(tmp_path / "a/1", [0.7])
    (row,) = results_table(study_of(tmp_path / "a"))
    assert not {"screened updates", "epsilon"} & set(row)
    write_run(tmp_path / "b/1", [0.7], screened_updates=0, privacy={"epsilon": 5.678, "delta": 1e-5})
    write_run(tmp_path / "b/2", [0.7], "psgd_pa", screened_updates=3)
    rows = {row["method"].text: row for row in results_table(study_of(tmp_path / "b"))}
    assert (rows["llcg"]["epsilon"].text, rows["psgd_pa"]["epsilon"].text) == ("5.68", "–")
    assert (rows["llcg"]["screened updates"].text, rows["psgd_pa"]["screened updates"].text) == ("–", "3")


def test_seeds_without_screened_updates_count_as_zero(tmp_path: Path) -> None:
    for seed, screened in enumerate((0, 6, 0)):
        write_run(tmp_path / str(seed), [0.5], seed=seed, screened_updates=screened)
    write_run(tmp_path / "none", [0.5], "psgd_pa", screened_updates=0)
    llcg, psgd_pa = results_table(study_of(tmp_path))
    assert llcg["screened updates"].value == pytest.approx(2)
    assert psgd_pa["screened updates"].text == "–"
