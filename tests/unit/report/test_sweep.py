"""A swept setting in the report."""

from pathlib import Path

import pytest

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
