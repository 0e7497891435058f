"""A swept setting in the report."""

from pathlib import Path

import pytest

from llcg_dist.report.figure import Figure, inline_svg
from llcg_dist.report.sweep import sweep_figures
from tests.helpers.run_records import study_of, write_run


def test_a_swept_number_is_a_line_and_two_are_a_map(tmp_path: Path) -> None:
    for K in (1, 4, 16):
        for seed in (0, 1):
            write_run(tmp_path / "one" / f"{K}-{seed}", [K / 20 + seed / 100], seed=seed, settings={"algorithm.K": K})
            for S in (0, 2):
                settings = {"algorithm.K": K, "algorithm.S": S}
                write_run(tmp_path / "two" / f"{K}-{S}-{seed}", [K / 20 + S / 50], seed=seed, settings=settings)
    (line,) = sweep_figures(study_of(tmp_path / "one"))
    assert line.name == "sweep_llcg_K"
    assert [(row["algorithm.K"], row["mean"]) for row in line.data] == [
        (1, pytest.approx(5.5)), (4, pytest.approx(20.5)), (16, pytest.approx(80.5)),
    ]  # fmt: skip
    (heat_map,) = sweep_figures(study_of(tmp_path / "two"))
    assert heat_map.name == "heat_llcg_K_S"
    assert len(heat_map.data) == 6
    assert heat_map.data[-1]["mean"] == pytest.approx(84)
    assert heat_map.data[-1]["runs"] == 2


def drawn(figure: Figure) -> str:
    return inline_svg(figure, {}) + figure.caption


def test_no_spread_of_one_run_or_over_other_settings(tmp_path: Path) -> None:
    """± is over the seeds of one setting; a cell of the map that holds several settings is their mean."""
    for K in (1, 4):
        for S in (0, 2):
            for lr in (1, 2):
                settings = {"algorithm.K": K, "algorithm.S": S}
                write_run(tmp_path / "once" / f"{K}-{S}-{lr}", [0.1 * lr], settings=settings | {"model.hidden": lr})
                write_run(tmp_path / "seeds" / f"{K}-{S}-{lr}", [0.1 * lr], seed=lr, settings=settings)
        write_run(tmp_path / "line" / str(K), [0.1], settings={"algorithm.K": K})
    over_settings = next(f for f in sweep_figures(study_of(tmp_path / "once")) if f.name == "heat_llcg_K_S")
    assert [row["runs"] for row in over_settings.data] == [2] * 4
    assert "±" not in drawn(over_settings)
    assert "mean over hidden" in over_settings.caption
    (over_seeds,) = sweep_figures(study_of(tmp_path / "seeds"))
    assert drawn(over_seeds).count("±") == 4 + 1
    (line,) = sweep_figures(study_of(tmp_path / "line"))
    assert "standard deviation" not in line.caption
    assert not any("std" in row for row in line.data)


def test_a_cell_that_lacks_settings_says_so_and_seeds_do_not_weigh(tmp_path: Path) -> None:
    for K, S, hidden, seeds in ((1, 0, 8, 3), (1, 0, 16, 1), (1, 2, 8, 1), (1, 2, 16, 1), (4, 0, 8, 1), (4, 2, 16, 1)):
        settings = {"algorithm.K": K, "algorithm.S": S, "model.hidden": hidden}
        for seed in range(seeds):
            write_run(tmp_path / f"{K}-{S}-{hidden}-{seed}", [hidden / 100], seed=seed, settings=settings)
    heat_map = next(f for f in sweep_figures(study_of(tmp_path)) if f.name == "heat_llcg_K_S")
    found = {
        (row["algorithm.K"], row["algorithm.S"]): (round(row["mean"], 9), row["settings"]) for row in heat_map.data
    }
    assert found == {(1, 0): (12, 2), (1, 2): (12, 2), (4, 0): (8, 1), (4, 2): (16, 1)}
    assert drawn(heat_map).count("1 of 2") == 2
    assert "mean over hidden; a cell that lacks some of these settings says how many it has" in heat_map.caption
