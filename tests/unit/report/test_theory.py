"""Diagnostics and S=auto in the report: every term with its error, and the steps asked for beside the steps taken."""

from pathlib import Path
from typing import Any

import pytest

from llcg_dist.report import find_runs
from llcg_dist.report.groups import studies
from llcg_dist.report.theory import theory_figures
from tests.helpers.run_records import write_run


def figures(folder: Path) -> dict[str, Any]:
    (study,) = studies(find_runs([folder]))
    return {figure.name: figure for figure in theory_figures(study)}


def points(figure: Any, column: str) -> list[tuple[float, float, float, float]]:
    return [(c["x"], c["mean"], c["low"], c["high"]) for c in figure.data if c["column"] == column]


def test_a_run_without_diagnostics_has_none_of_it(tmp_path: Path) -> None:
    write_run(tmp_path / "a", [0.5, 0.6], row={"S": 1})
    assert figures(tmp_path) == {}


def test_a_band_holds_the_seeds_and_their_errors(tmp_path: Path) -> None:
    for seed, (value, error) in enumerate([(0.2, 0.05), (0.4, 0.1)]):
        row = {"sigma_bias_sq": value, "sigma_bias_sq_error": error, "kappa_a_sq": value}
        write_run(tmp_path / str(seed), [0.5, 0.6], seed=seed, row=row)
    (figure,) = figures(tmp_path).values()
    assert figure.name == "theory_terms"
    for r, (x, *rest) in enumerate(points(figure, "sigma_bias_sq"), start=1):
        assert (x, *rest) == (r, pytest.approx(0.3), pytest.approx(0.15), pytest.approx(0.5))
    assert points(figure, "kappa_a_sq")[0] == (1, pytest.approx(0.3), 0.2, 0.4)  # exact: seeds only
    assert len(figure.hover) == 2  # no panel for an error
    assert [axes.get_yscale() for axes in figure.canvas.axes] == ["log", "log"]


def test_an_estimate_below_zero_is_drawn(tmp_path: Path) -> None:
    write_run(tmp_path / "a", [0.5], row={"sigma_bias_sq": -0.001, "sigma_bias_sq_error": 0.01})
    write_run(tmp_path / "b", [0.5], "psgd_pa", row={"sigma_bias_sq": 2.0, "sigma_bias_sq_error": 0.01})
    axes = figures(tmp_path)["theory_terms"].canvas.axes[0]
    assert axes.get_yscale() == "symlog"
    assert axes.get_ylim()[0] < -0.001


def test_steps_asked_for_stand_beside_steps_taken(tmp_path: Path) -> None:
    write_run(tmp_path / "a", [0.5, 0.6], row={"theorem2_S": 40.5, "theorem1_K": 0.25, "S": 3})
    figure = figures(tmp_path)["theory_steps"]
    assert points(figure, "theorem2_S") == [(1, 40.5, 40.5, 40.5), (2, 40.5, 40.5, 40.5)]
    assert [mean for _, mean, _, _ in points(figure, "S")] == [3, 3]
    assert [mean for _, mean, _, _ in points(figure, "local_steps")] == [8, 8]
    dotted = [[line.get_linestyle() for line in axes.get_lines()] for axes in figure.canvas.axes[:2]]
    assert dotted == [["-", ":"], ["-", ":"]]
    assert "does not apply" not in figure.caption


def test_where_the_theorem_is_silent_the_report_says_so(tmp_path: Path) -> None:
    silent = {"theorem2_S": None, "theorem1_K": 0.25, "S": 1, "theorem_note": "the formulas do not apply: …"}
    write_run(tmp_path / "a", [0.5, 0.6], row=silent)
    write_run(tmp_path / "b", [0.5], "psgd_pa")
    figure = figures(tmp_path)["theory_steps"]
    assert points(figure, "theorem2_S") == []
    assert "In 2 of 2 measured rounds the formula of Theorem 2 does not apply" in figure.caption
    assert "does not apply" in figure.canvas.axes[0].texts[0].get_text()


def test_auto_tells_its_reasons(tmp_path: Path) -> None:
    write_run(
        tmp_path / "a", [0.5], row={"auto_s_bound": 7.5, "auto_s_payoff": None, "S": 2}, settings={"algorithm.S": 9}
    )
    figure = figures(tmp_path)["auto_s"]
    assert [(cell["column"], cell["mean"]) for cell in figure.data] == [("S", 2), ("auto_s_bound", 7.5)]


def test_what_is_no_number_is_a_gap(tmp_path: Path) -> None:
    write_run(tmp_path / "a", [0.5], row={"kappa_sq": 0.5})
    write_run(tmp_path / "b", [0.5], "psgd_pa", row={"kappa_sq": "torn", "theorem2_S": []})
    found = figures(tmp_path)
    assert [cell["group"] for cell in found["theory_terms"].data] == ["llcg"]
